package clients

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestJavaReadsOurGroups: Kafka's decoder over the files of __consumer_offsets, which hold a group's
// generation, a commit, a reset and a deletion.
func TestJavaReadsOurGroups(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "1", "offsets.topic.num.partitions": "1"})
	fill(t, b.Addr(), "java", 1, 0, 100)
	run(t, nil, "java", java(cp, consoleConsumer, "--bootstrap-server", b.Addr(), "--topic", "java", "--group", "g",
		"--from-beginning", "--max-messages", "100")...)
	for _, args := range [][]string{
		{"--reset-offsets", "--topic", "java", "--shift-by", "-30", "--execute"}, {"--delete"},
	} {
		const class = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
		run(t, nil, "java", java(cp, class, append([]string{"--bootstrap-server", b.Addr(), "--group", "g"}, args...)...)...)
	}
	b.Stop()
	dump := string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder",
		"--files", filepath.Join(b.Dir, "data", "__consumer_offsets-0", "00000000000000000000.log"))...))
	for _, want := range []string{
		`key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"protocolType":"consumer","generation":1,"protocol":"range"`,
		`key: {"type":"1","data":{"group":"g","topic":"java","partition":0}} payload: {"version":"3","data":{"offset":100,`,
		`"data":{"offset":70,`,
		`key: {"type":"2","data":{"group":"g"}} payload: <DELETE>`,
	} {
		if !strings.Contains(dump, want) {
			t.Errorf("Kafka's decoder does not show %s in\n%.3000s", want, dump)
		}
	}
}
