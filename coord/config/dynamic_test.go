package config

import (
	"fmt"
	"testing"
)

// TestDynamic: this broker's own value counts first, then all brokers', then what was set at start in any unit.
func TestDynamic(t *testing.T) {
	b, _, err := Load(map[string]string{"log.retention.hours": "1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := func(value string, source Source, synonyms string) {
		t.Helper()
		v, src := b.Value("log.retention.ms")
		if got := fmt.Sprint(b.Synonyms("log.retention.ms")); v != value || src != source || got != synonyms {
			t.Errorf("%s from %d, %s; want %s from %d, %s", v, src, got, value, source, synonyms)
		}
		if topic, _ := b.TopicValue("retention.ms", nil); topic != value {
			t.Errorf("a topic has %s, want %s", topic, value)
		}
	}
	const atStart = "{log.retention.hours 1 4} {log.retention.hours 168 5}]"
	want("3600000", StaticBroker, "["+atStart)
	if errs := b.SetDynamic(map[string]string{"log.retention.ms": "5"}, map[string]string{"log.retention.ms": " 7 "}); errs != nil {
		t.Error(errs)
	}
	want("5", DynamicBroker, "[{log.retention.ms 5 2} {log.retention.ms 7 3} "+atStart)
	// What is wrong does not count; the rest does.
	errs := b.SetDynamic(map[string]string{"log.retention.ms": "0", "broker.id": "7", "nonsense": "1"}, map[string]string{"log.retention.ms": "7"})
	if len(errs) != 3 {
		t.Errorf("%d of 3 are told to be wrong: %v", len(errs), errs)
	}
	want("7", DynamicDefault, "[{log.retention.ms 7 3} "+atStart)
	b.SetDynamic(nil, nil)
	want("3600000", StaticBroker, "["+atStart)
}

func TestCheckDynamic(t *testing.T) {
	for _, c := range []struct {
		name, value string
		ok          bool
	}{
		{"log.retention.ms", "-1", true}, {"log.retention.ms", "0", false}, {"log.retention.ms", "", false}, {"log.retention.hours", "1", false},
		{"message.max.bytes", "1000", true}, {"message.max.bytes", "-1", false}, {"message.max.bytes", "many", false},
		{"compression.type", "zstd", true}, {"compression.type", "zip", false},
		{"log.cleanup.policy", "delete", true}, {"log.cleanup.policy", "", false},
		{"num.partitions", "3", false}, {"log.cleaner.threads", "2", false},
		{"unclean.leader.election.enable", "true", true}, {"unclean.leader.election.enable", "perhaps", false},
	} {
		if err := CheckDynamic(map[string]string{c.name: c.value}); (err == nil) != c.ok {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}
