package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"platter/tools/proc"
)

// admin runs a command against a broker.
func admin(t *testing.T, b *proc.Broker, wantExit int, words ...string) (stdout, stderr string) {
	t.Helper()
	return command(t, wantExit, "", append(words, "-b", b.Addr())...)
}

// wantWords compares texts with all runs of blanks made one.
func wantWords(t *testing.T, what, got, want string) {
	t.Helper()
	blanks := regexp.MustCompile(`[ \t]+`)
	if got = blanks.ReplaceAllString(got, " "); got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestAlter: partitions and settings change while the broker runs, and stay changed over a restart and a kill.
func TestAlter(t *testing.T) {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["broker.id"] = "3"
	b.Props["log.retention.hours"] = "1"
	b.Start()
	admin(t, b, 0, "topic", "create", "a", "b")
	out, _ := admin(t, b, 0, "topic", "alter", "a", "b", "-p", "3", "--config", "segment.bytes=2000000", "--validate-only")
	wantWords(t, "dry run", out, "a: could be changed: segment.bytes=2000000\nb: could be changed: segment.bytes=2000000\na could have 3 partitions\nb could have 3 partitions\n")
	out, _ = admin(t, b, 0, "config", "describe", "topic", "a")
	wantWords(t, "after the dry run", out, "a\n SETTING VALUE SET BY\n retention.ms 3600000 broker, at start\n")
	out, _ = admin(t, b, 0, "topic", "alter", "a", "-p", "3", "--config", "segment.bytes=2000000")
	wantWords(t, "alter", out, "a: segment.bytes=2000000\na now has 3 partitions\n")
	out, _ = admin(t, b, 0, "config", "alter", "brokers", "--set", "message.max.bytes=2000")
	wantWords(t, "all brokers", out, "all brokers: message.max.bytes=2000\n")
	out, _ = admin(t, b, 0, "config", "alter", "broker", "3", "--set", "log.retention.ms=60000")
	wantWords(t, "one broker", out, "broker 3: log.retention.ms=60000\n")

	check := func(when string) {
		t.Helper()
		out, _ := admin(t, b, 0, "config", "describe", "topic", "a")
		wantWords(t, when, out, "a\n SETTING VALUE SET BY\n max.message.bytes 2000 all brokers, at run time\n"+
			" retention.ms 60000 broker, at run time\n segment.bytes 2000000 topic\n")
		out, _ = admin(t, b, 0, "config", "describe", "brokers")
		wantWords(t, when, out, "all brokers\n SETTING VALUE SET BY\n message.max.bytes 2000 all brokers, at run time\n")
		out, _ = admin(t, b, 0, "config", "describe", "broker", "3", "--name", "log.retention.ms")
		wantWords(t, when, out, "broker 3\n SETTING VALUE SET BY\n log.retention.ms 60000 broker, at run time\n")
		_, stderr := command(t, 1, strings.Repeat("x", 3000)+"\n", "produce", "-b", b.Addr(), "-t", "a")
		if !strings.Contains(stderr, "at most 2000 go into one") {
			t.Errorf("%s: a record above message.max.bytes: %s", when, stderr)
		}
	}
	check("at once")
	b.Stop()
	b.Start()
	check("after a restart")
	b.Kill()
	b.Start()
	check("after a kill")

	admin(t, b, 0, "topic", "alter", "a", "--delete-config", "segment.bytes")
	admin(t, b, 0, "config", "alter", "broker", "3", "--delete", "log.retention.ms")
	admin(t, b, 0, "config", "alter", "brokers", "--delete", "message.max.bytes")
	out, _ = admin(t, b, 0, "config", "describe", "topic", "a")
	wantWords(t, "all taken back", out, "a\n SETTING VALUE SET BY\n retention.ms 3600000 broker, at start\n")
	b.Stop()
}

// TestAlterErrors: what cannot be done is said in a line each, with exit code 1; what can be done is.
func TestAlterErrors(t *testing.T) {
	b := startBroker(t)
	admin(t, b, 0, "topic", "create", "a", "-p", "2")
	for want, words := range map[string][]string{
		"INVALID_PARTITIONS": {"topic", "alter", "a", "-p", "2"},
		"INVALID_CONFIG":     {"topic", "alter", "a", "--config", "retention.ms=soon"},
		"Cannot update these configs dynamically: num.partitions": {"config", "alter", "brokers", "--set", "num.partitions=3"},
		"there is no setting nonsense":                            {"config", "describe", "topic", "a", "--name", "nonsense"},
		"unknown broker":                                          {"config", "describe", "broker", "77"},
	} {
		_, stderr := admin(t, b, 1, words...)
		wantOneLine(t, stderr, want)
	}
	out, stderr := admin(t, b, 1, "config", "alter", "topic", "nowhere", "a", "--set", "retention.ms=5", "--json")
	wantOneLine(t, stderr, "UNKNOWN_TOPIC_OR_PARTITION")
	var got []struct {
		Name, Error string
		Changes     []string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 || got[0].Name != "a" || got[0].Error != "" || got[1].Error == "" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestClusterDescribe: as text and as JSON, and the exit code for scripts.
func TestClusterDescribe(t *testing.T) {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["broker.id"], b.Props["broker.rack"] = "4", "r1"
	b.Start()
	admin(t, b, 0, "topic", "create", "a", "-p", "3")
	out, _ := admin(t, b, 0, "cluster", "describe", "--check")
	_, rest, _ := strings.Cut(out, "\n")
	wantWords(t, "cluster", rest, "controller broker 4\ntopics 1\npartitions 3\noffline 0\nleaderless 0\nunder-replicated 0\n\n"+
		"BROKER ADDRESS RACK LEADERS REPLICAS\n4 "+b.Addr()+" r1 3 3\n")
	out, _ = admin(t, b, 0, "cluster", "describe", "--json")
	var got struct {
		ID         string   `json:"cluster_id"`
		Controller int      `json:"controller"`
		Offline    []string `json:"offline_partitions"`
		Brokers    []struct {
			ID      int
			Address string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.ID == "" || got.Controller != 4 || got.Offline == nil || len(got.Brokers) != 1 || got.Brokers[0].Address != b.Addr() {
		t.Errorf("%v: %s", err, out)
	}
	b.Stop()
}
