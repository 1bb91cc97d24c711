package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"platter/tools/proc"
)

// javaTool runs one of Kafka's tools, and gives all that it prints; some fail with exit code 0.
func javaTool(t *testing.T, cp string, b *target, class string, args ...string) string {
	t.Helper()
	full := java(cp, "org.apache.kafka.tools."+class, append([]string{"--bootstrap-server", b.Addr()}, args...)...)
	out, err := exec.CommandContext(t.Context(), "java", full...).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s %q: %v", class, args, err)
	}
	return string(out)
}

func wantParts(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s: no %q in\n%s", what, p, got)
		}
	}
}

// TestJavaConfigs: Kafka's config tool changes and shows the settings of topics and brokers.
func TestJavaConfigs(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"broker.id": "0"})
	run(t, nil, proc.Binary(t), "topic", "create", "a", "-b", b.Addr())
	configs := func(args ...string) string { return javaTool(t, cp, b, "ConfigCommand", args...) }
	topic := []string{"--entity-type", "topics", "--entity-name", "a"}
	one := []string{"--entity-type", "brokers", "--entity-name", "0"}
	all := []string{"--entity-type", "brokers", "--entity-default"}

	wantParts(t, "topic", configs(append(topic, "--alter", "--add-config", "retention.ms=1000,cleanup.policy=[delete]")...), "Completed")
	wantParts(t, "all brokers", configs(append(all, "--alter", "--add-config", "log.retention.ms=5000")...), "Completed")
	wantParts(t, "one broker", configs(append(one, "--alter", "--add-config", "log.segment.bytes=5000000")...), "Completed")
	wantParts(t, "read-only", configs(append(one, "--alter", "--add-config", "num.partitions=5")...),
		"InvalidRequestException", "Cannot update these configs dynamically")
	wantParts(t, "wrong value", configs(append(topic, "--alter", "--add-config", "retention.ms=soon")...), "InvalidConfigurationException")

	wantParts(t, "topic", configs(append(topic, "--describe")...),
		"retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5000",
		"cleanup.policy=delete")
	wantParts(t, "all brokers", configs(append(all, "--describe")...), "log.retention.ms=5000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
	wantParts(t, "one broker", configs(append(one, "--describe")...),
		"log.segment.bytes=5000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.segment.bytes=5000000, DEFAULT_CONFIG:log.segment.bytes=1073741824}")

	wantParts(t, "take back", configs(append(topic, "--alter", "--delete-config", "retention.ms,cleanup.policy")...), "Completed")
	if out := configs(append(topic, "--describe")...); strings.Contains(out, "DYNAMIC_TOPIC_CONFIG") {
		t.Errorf("after all was taken back: %s", out)
	}
}

// TestJavaAdministration: Kafka's tools that add partitions, delete records, show directories and producers, and
// elect leaders.
func TestJavaAdministration(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"broker.id": "0"})
	run(t, nil, proc.Binary(t), "topic", "create", "a", "-p", "2", "-b", b.Addr())
	run(t, strings.NewReader("1\n2\n3\n"), proc.Binary(t), "produce", "-t", "a", "-p", "0", "-b", b.Addr())

	if out := javaTool(t, cp, b, "TopicCommand", "--alter", "--topic", "a", "--partitions", "3"); strings.Contains(out, "rror") {
		t.Errorf("alter: %s", out)
	}
	wantParts(t, "describe", javaTool(t, cp, b, "TopicCommand", "--describe", "--topic", "a"), "PartitionCount: 3", "Partition: 2\tLeader: ")
	wantParts(t, "fewer", javaTool(t, cp, b, "TopicCommand", "--alter", "--topic", "a", "--partitions", "1"), "higher than the requested 1")

	file := filepath.Join(t.TempDir(), "offsets.json")
	write(t, file, `{"version":1,"partitions":[{"topic":"a","partition":0,"offset":2},{"topic":"a","partition":1,"offset":-1},{"topic":"a","partition":2,"offset":5}]}`)
	wantParts(t, "delete records", javaTool(t, cp, b, "DeleteRecordsCommand", "--offset-json-file", file),
		"partition: a-0\tlow_watermark: 2", "partition: a-1\tlow_watermark: 0", "partition: a-2\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException")
	if got := string(run(t, nil, proc.Binary(t), "consume", "-t", "a", "-e", "-b", b.Addr())); got != "3\n" {
		t.Errorf("what is left: %q", got)
	}
	wantParts(t, "log dirs", javaTool(t, cp, b, "LogDirsCommand", "--describe"),
		`"partition":"a-0","size":`, `"offsetLag":0,"isFuture":false`, `"error":null,"logDir":"`+filepath.Join(b.Dir, "data")+`"`)
	wantParts(t, "producers", javaTool(t, cp, b, "TransactionsCommand", "describe-producers", "--topic", "a", "--partition", "0"), "\t2           \t")
	b.settleWhole("a")
	if rolled() { // then others lead
		wantParts(t, "preferred", javaTool(t, cp, b, "LeaderElectionCommand", "--election-type", "preferred", "--topic", "a", "--partition", "0"), "a-0")
	}
	for _, kind := range []string{"preferred", "unclean"} {
		wantParts(t, kind, javaTool(t, cp, b, "LeaderElectionCommand", "--election-type", kind, "--topic", "a", "--partition", "0"), "Valid replica already elected")
	}
	wantParts(t, "reassignments", javaTool(t, cp, b, "reassign.ReassignPartitionsCommand", "--list"), "No partition reassignments found")
}
