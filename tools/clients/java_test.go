package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kafkaTools fetches Apache Kafka's own command line tools by Maven (once; they are kept in the user's
// cache directory) and returns their class path.
func kafkaTools(t *testing.T) string {
	t.Helper()
	need(t, "java", "mvn")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache directory: %v", err)
	}
	pom, err := os.ReadFile("java/pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`<kafka.version>(.*)</kafka.version>`).FindSubmatch(pom)
	lib := filepath.Join(cache, "platter-tests", "kafka-"+string(version[1]))
	if _, err := os.Stat(filepath.Join(lib, "complete")); err == nil {
		return filepath.Join(lib, "*")
	}
	out, err := exec.Command("mvn", "-q", "-B", "-f", "java/pom.xml", "dependency:copy-dependencies", "-DoutputDirectory="+lib).CombinedOutput()
	if err != nil {
		t.Skipf("Maven cannot fetch Kafka's tools: %v\n%.1000s", err, out)
	}
	write(t, filepath.Join(lib, "complete"), "")
	return filepath.Join(lib, "*")
}

func java(cp, class string, args ...string) []string {
	return append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", cp, class}, args...)
}

const (
	consoleProducer = "org.apache.kafka.tools.ConsoleProducer"
	consoleConsumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
)

// TestJavaConsole: Kafka's console producer in every codec, and its console consumer by partition.
func TestJavaConsole(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "1"})
	b.through(func(t *testing.T, suffix string) {
		for _, codec := range codecs {
			topic := "java-" + codec + suffix
			var in bytes.Buffer
			for i := range 500 {
				fmt.Fprintf(&in, "line %d %s\n", i, strings.Repeat("x", i%90))
			}
			want := in.String()
			run(t, &in, "java", java(cp, consoleProducer, "--bootstrap-server", b.Addr(), "--topic", topic, "--compression-codec", codec)...)
			got := run(t, nil, "java", java(cp, consoleConsumer, "--bootstrap-server", b.Addr(), "--topic", topic,
				"--partition", "0", "--offset", "earliest", "--max-messages", "500")...)
			if string(got) != want {
				t.Errorf("%s: the console consumer read something else: %d bytes against %d", codec, len(got), len(want))
			}
		}
	})
}

// TestJavaVerifiable: Kafka's verifiable producer counts its acknowledgements, and its offset tool sees them.
func TestJavaVerifiable(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "1"})
	b.through(func(t *testing.T, suffix string) { javaVerifiable(t, cp, b, "verifiable"+suffix) })
}

func javaVerifiable(t *testing.T, cp string, b *target, topic string) {
	t.Helper()
	// By itself this tool sets retries to 0, unlike the producer that it drives.
	retries := filepath.Join(t.TempDir(), "retries.properties")
	write(t, retries, "retries=2147483647\n")
	out := run(t, nil, "java", java(cp, "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", b.Addr(),
		"--topic", topic, "--max-messages", "2000", "--acks", "-1", "--command-config", retries)...)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var summary struct {
		Name  string `json:"name"`
		Sent  int    `json:"sent"`
		Acked int    `json:"acked"`
	}
	for _, line := range lines {
		if strings.Contains(line, `"tool_data"`) {
			if err := json.Unmarshal([]byte(line), &summary); err != nil {
				t.Fatal(err)
			}
		}
	}
	if summary.Sent != 2000 || summary.Acked != 2000 {
		t.Errorf("the verifiable producer says sent %d, acknowledged %d", summary.Sent, summary.Acked)
	}
	for when, want := range map[string]string{"latest": topic + ":0:2000", "earliest": topic + ":0:0", "max-timestamp": topic + ":0:"} {
		got := string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", b.Addr(), "--topic", topic, "--time", when)...))
		if !strings.HasPrefix(strings.TrimSpace(got), want) {
			t.Errorf("offsets at %s: %q, want %q", when, got, want)
		}
	}
}

// TestJavaTopics: Kafka's topic tool creates, describes, lists and deletes.
func TestJavaTopics(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, nil)
	topics := func(args ...string) string {
		return string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.TopicCommand", append([]string{"--bootstrap-server", b.Addr()}, args...)...)...))
	}
	topics("--create", "--topic", "made", "--partitions", "3", "--config", "retention.ms=3600000")
	described := topics("--describe", "--topic", "made")
	for _, want := range []string{"PartitionCount: 3", fmt.Sprint("ReplicationFactor: ", replicas()), "retention.ms=3600000"} {
		if !strings.Contains(described, want) {
			t.Errorf("no %q in %s", want, described)
		}
	}
	if n := len(regexp.MustCompile(`Leader: [0-2]\t`).FindAllString(described, -1)); n != 3 {
		t.Errorf("%d partitions have leaders: %s", n, described)
	}
	if got := topics("--list"); strings.TrimSpace(got) != "made" {
		t.Errorf("list: %q", got)
	}
	topics("--delete", "--topic", "made")
	if got := topics("--list"); strings.TrimSpace(got) != "" {
		t.Errorf("list after delete: %q", got)
	}
}

// TestJavaDumpReadsOurFiles: Kafka's dump tool over our log and index files, without a complaint.
func TestJavaDumpReadsOurFiles(t *testing.T) {
	cp := kafkaTools(t)
	b := broker(t, map[string]string{"num.partitions": "1", "log.index.interval.bytes": "512", "log.segment.bytes": "65536"})
	for _, codec := range codecs {
		var in bytes.Buffer
		for i := range 3000 {
			fmt.Fprintf(&in, "line %d %s\n", i, strings.Repeat("x", i%90))
		}
		run(t, &in, "java", java(cp, consoleProducer, "--bootstrap-server", b.Addr(), "--topic", "dump-"+codec,
			"--compression-codec", codec, "--batch-size", "1500")...)
	}
	b.Stop()
	files, err := filepath.Glob(filepath.Join(b.Dir, "data", "dump-*", "0*"))
	if err != nil || len(files) < 15 {
		t.Fatalf("only %d files to dump (%v)", len(files), err)
	}
	var batches int
	for _, group := range []string{".log", ".index", ".timeindex", ".snapshot"} {
		var some []string
		for _, f := range files {
			if strings.HasSuffix(f, group) {
				some = append(some, f)
			}
		}
		if len(some) == 0 {
			t.Errorf("no %s file", group)
			continue
		}
		out := string(run(t, nil, "java", java(cp, "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", strings.Join(some, ","))...))
		batches += strings.Count(out, "isvalid: true")
		for _, bad := range []string{"isvalid: false", "Found timestamp mismatch", "Found out of order", "Found indexed offsets", "Index position", "Non-consecutive", "Could not", "Exception", "mismatch", "WARN", "not found"} {
			if i := strings.Index(out, bad); i >= 0 {
				t.Errorf("%s: the dump tool complains: %.300s", group, out[max(0, i-150):])
			}
		}
	}
	if batches < 50 {
		t.Errorf("only %d batches were seen", batches)
	}
}
