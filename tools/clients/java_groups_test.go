package clients

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestJavaGroups: Kafka's console consumer in a group, its group tool, its verifiable consumer and its
// performance tools.
func TestJavaGroups(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "2"})
	b.through(func(t *testing.T, suffix string) { javaGroups(t, cp, b, "grouped"+suffix, "console"+suffix) })
}

func javaGroups(t *testing.T, cp string, b *target, topic, group string) {
	t.Helper()
	var in bytes.Buffer
	for i := range 500 {
		fmt.Fprintf(&in, "line %d\n", i)
	}
	run(t, &in, "java", java(cp, consoleProducer, "--bootstrap-server", b.Addr(), "--topic", topic)...)
	read := func(n string) int {
		args := []string{"--bootstrap-server", b.Addr(), "--topic", topic, "--group", group, "--from-beginning", "--max-messages", n}
		if rolled() {
			args = append(args, "--command-property", fmt.Sprint("session.timeout.ms=", shortSession.Milliseconds()))
		}
		out := run(t, nil, "java", java(cp, consoleConsumer, args...)...)
		return bytes.Count(out, []byte{'\n'})
	}
	if n := read("300"); n != 300 {
		t.Errorf("%d lines came first", n)
	}
	if n := read("200"); n != 200 {
		t.Errorf("%d lines came from the committed offsets on", n)
	}
	groups := func(args ...string) string {
		return string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
			append([]string{"--bootstrap-server", b.Addr()}, args...)...)...))
	}
	if got := groups("--list"); !strings.Contains(got, group) {
		t.Errorf("the list has no group: %q", got)
	}
	if lag := lagOf(group, topic, groups("--describe", "--group", group)); lag != "0 0" && !rolled() { // there its last commit may not have come through
		t.Errorf("the lag is %q after all was read", lag)
	}
	groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
	if n := read("500"); n != 500 {
		t.Errorf("%d lines came after a reset", n)
	}
	groups("--delete", "--group", group)
	if got := groups("--list"); strings.Contains(got, group) {
		t.Errorf("the group is still there: %q", got)
	}
}

// lagOf is the LAG column of a described group.
func lagOf(group, topic, described string) string {
	var lags []string
	for _, m := range regexp.MustCompile(`(?m)^`+group+`\s+`+topic+`\s+\d+\s+\d+\s+\d+\s+(\d+)`).FindAllStringSubmatch(described, -1) {
		lags = append(lags, m[1])
	}
	return strings.Join(lags, " ")
}

// TestJavaPerformanceTools: they load the broker, and count what came back.
func TestJavaPerformanceTools(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "2"})
	b.through(func(t *testing.T, suffix string) { javaPerformance(t, cp, b, "perf"+suffix, "verify"+suffix) })
}

func javaPerformance(t *testing.T, cp string, b *target, topic, group string) {
	t.Helper()
	out := string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", "50000",
		"--record-size", "200", "--throughput", "-1", "--producer-props", "bootstrap.servers="+b.Addr(), "compression.type=lz4")...))
	if !strings.Contains(out, "50000 records sent") {
		t.Errorf("the producer's report: %.500s", out)
	}
	out = string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", b.Addr(),
		"--topic", topic, "--num-records", "50000", "--timeout", "60000")...))
	if !strings.Contains(out, ", 50000, ") {
		t.Errorf("the consumer's report: %.800s", out)
	}
	out = string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", b.Addr(),
		"--topic", topic, "--group-id", group, "--max-messages", "2000", "--reset-policy", "earliest")...))
	for _, want := range []string{`"name":"partitions_assigned"`, `"name":"records_consumed"`, `"name":"offsets_committed"`, `"success":true`} {
		if !strings.Contains(out, want) {
			t.Errorf("the verifiable consumer says no %s: %.500s", want, out)
		}
	}
}
