package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

// groupCase is a broker with a topic of two partitions, ten records each, a second apart, and a way to call
// `platter group` there.
type groupCase struct {
	t *testing.T
	b *proc.Broker
}

// firstMs is the time of the first record of each partition: 2026-07-01T12:00:00Z.
const firstMs = 1782907200000

func newGroupCase(t *testing.T) *groupCase {
	b := startBroker(t)
	c := &groupCase{t, b}
	command(t, 0, "", "topic", "create", "-b", b.Addr(), "access", "-p", "2")
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	for i := range 20 {
		r := &kgo.Record{
			Topic: "access", Partition: int32(i % 2), Value: fmt.Append(nil, i),
			Timestamp: time.UnixMilli(firstMs + int64(i/2)*1000),
		}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *groupCase) run(wantExit int, args ...string) (string, string) {
	c.t.Helper()
	return command(c.t, wantExit, "", append([]string{"group", args[0], "-b", c.b.Addr()}, args[1:]...)...)
}

// offsets is what the group has committed for the two partitions.
func (c *groupCase) offsets(group string) string {
	c.t.Helper()
	out, _ := c.run(0, "describe", group, "--json")
	var views []struct {
		Partitions []struct {
			Partition int32  `json:"partition"`
			Current   *int64 `json:"current_offset"`
		} `json:"partitions"`
	}
	if err := json.Unmarshal([]byte(out), &views); err != nil || len(views) != 1 {
		c.t.Fatalf("describe: %v\n%s", err, out)
	}
	var s []string
	for _, p := range views[0].Partitions {
		if p.Current != nil {
			s = append(s, fmt.Sprintf("%d:%d", p.Partition, *p.Current))
		}
	}
	return strings.Join(s, " ")
}

// TestResetOffsets puts a group's offsets wherever they can be put, first dry, then truly.
func TestResetOffsets(t *testing.T) {
	c := newGroupCase(t)
	reset := func(args ...string) string {
		t.Helper()
		out, _ := c.run(0, append([]string{"reset-offsets", "readers"}, args...)...)
		return out
	}
	out, stderr := c.run(0, "reset-offsets", "readers", "--topic", "access", "--to-earliest")
	if !strings.Contains(stderr, "dry run") || !strings.Contains(out, "NEW OFFSET") {
		t.Errorf("a dry run does not say that it is one:\n%s%s", out, stderr)
	}
	c.run(1, "describe", "readers") // it has changed nothing: there is no group yet

	reset("--topic", "access", "--to-earliest", "--execute")
	if got := c.offsets("readers"); got != "0:0 1:0" {
		t.Errorf("to the beginning: %s", got)
	}
	for _, step := range []struct{ args, want string }{
		{"--topic access --to-latest", "0:10 1:10"},
		{"--topic access:1 --to-offset 4", "0:10 1:4"},
		{"--all-topics --shift-by -3", "0:7 1:1"},
		{"--all-topics --shift-by -3", "0:4 1:0"},
		{"--all-topics --shift-by 9223372036854775807", "0:10 1:10"},
		{"--topic access:0 --topic access:1 --to-datetime 2026-07-01T12:00:05.000", "0:5 1:5"},
		{"--topic access:0,1 --to-datetime 2026-07-01T14:00:02.001+02:00", "0:3 1:3"},
		{"--all-topics --to-datetime 2030-01-01", "0:10 1:10"},
		{"--all-topics --by-duration P5000D", "0:0 1:0"},
		{"--all-topics --by-duration 0s", "0:10 1:10"},
		{"--topic access --to-offset 6", "0:6 1:6"},
		{"--topic access --to-current", "0:6 1:6"},
	} {
		before := c.offsets("readers")
		reset(strings.Fields(step.args)...)
		if got := c.offsets("readers"); got != before {
			t.Errorf("%s: a dry run changed %s to %s", step.args, before, got)
		}
		reset(append(strings.Fields(step.args), "--execute")...)
		if got := c.offsets("readers"); got != step.want {
			t.Errorf("%s: from %s to %s, want %s", step.args, before, got, step.want)
		}
	}
}

// TestResetOffsetsByFile: what --export writes, --from-file reads.
func TestResetOffsetsByFile(t *testing.T) {
	c := newGroupCase(t)
	c.run(0, "reset-offsets", "readers", "--topic", "access", "--to-offset", "7", "--execute")
	exported, _ := c.run(0, "reset-offsets", "readers", "--all-topics", "--to-current", "--export")
	if exported != "access,0,7\naccess,1,7\n" {
		t.Fatalf("exported %q", exported)
	}
	file := filepath.Join(t.TempDir(), "offsets.csv")
	if err := os.WriteFile(file, []byte("access,0,2\naccess,1,99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr := c.run(0, "reset-offsets", "readers", "--from-file", file, "--execute")
	if got := c.offsets("readers"); got != "0:2 1:10" || !strings.Contains(stderr, "access [1]: offset 99 is out of range") {
		t.Errorf("%s; %s", got, stderr)
	}
	done, _ := command(t, 0, exported, "group", "reset-offsets", "-b", c.b.Addr(), "readers", "--from-file", "-", "--execute", "--json")
	var result struct {
		Group    string
		Executed bool
		Offsets  []struct {
			Topic     string
			Partition int32
			Current   int64 `json:"current_offset"`
			New       int64 `json:"new_offset"`
		}
	}
	if err := json.Unmarshal([]byte(done), &result); err != nil || !result.Executed || len(result.Offsets) != 2 ||
		result.Offsets[1].Current != 10 || result.Offsets[1].New != 7 {
		t.Errorf("%v: %s", err, done)
	}
	if got := c.offsets("readers"); got != "0:7 1:7" {
		t.Errorf("%s", got)
	}
	for _, args := range []string{
		"--topic nothing --to-earliest", "--topic access:2 --to-earliest", "--topic access:0 --topic access:9 --to-latest --execute",
	} {
		if _, stderr := c.run(1, append([]string{"reset-offsets", "readers"}, strings.Fields(args)...)...); strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %s", args, stderr)
		}
	}
	c.run(1, "reset-offsets", "others", "--all-topics", "--to-earliest")
	c.run(1, "reset-offsets", "others", "--topic", "access", "--shift-by", "1")
	if got := c.offsets("readers"); got != "0:7 1:7" {
		t.Errorf("a refused reset left %s", got)
	}
}

// TestGroups: what is shown of a group with a member, and what is refused while it has one.
func TestGroups(t *testing.T) {
	c := newGroupCase(t)
	if out, _ := c.run(0, "list"); out != "" {
		t.Errorf("list of nothing: %q", out)
	}
	for _, verb := range []string{"list", "describe"} {
		if out, _ := c.run(0, verb, "--json"); out != "[]\n" {
			t.Errorf("%s of nothing: %q", verb, out)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.b.Addr()), kgo.ClientID("reader-7"), kgo.ConsumerGroup("readers"),
		kgo.ConsumeTopics("access"), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for read := 0; read < 20; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		read += fs.NumRecords()
	}
	head := map[string]map[int32]kgo.EpochOffset{"access": {0: {Epoch: -1, Offset: 4}}}
	cl.CommitOffsetsSync(ctx, head, nil)

	member, _ := cl.GroupMetadata()
	wantLines(t, c.out("describe", "readers"),
		"readers: state Stable, assignor range, 1 member, coordinator 0",
		"TOPIC PARTITION CURRENT OFFSET LOG END OFFSET LAG MEMBER ID HOST CLIENT ID",
		"access 0 4 10 6 "+member+" /127.0.0.1 reader-7",
		"access 1 - 10 - "+member+" /127.0.0.1 reader-7")
	wantLines(t, c.out("describe", "--members"),
		"readers: state Stable, assignor range, 1 member, coordinator 0",
		"MEMBER ID INSTANCE ID HOST CLIENT ID PARTITIONS ASSIGNMENT",
		member+" - /127.0.0.1 reader-7 2 access:0,1")
	wantLines(t, c.out("list"), "GROUP STATE PROTOCOL TYPE COORDINATOR", "readers Stable consumer 0")
	wantLines(t, c.out("list", "--state", "stable,empty"), "GROUP STATE PROTOCOL TYPE COORDINATOR", "readers Stable consumer 0")
	if out := c.out("list", "--state", "Empty"); out != "" {
		t.Errorf("listed as empty:\n%s", out)
	}
	for _, args := range [][]string{
		{"reset-offsets", "readers", "--topic", "access", "--to-earliest", "--execute"},
		{"reset-offsets", "readers", "--topic", "access", "--to-earliest"},
		{"delete", "readers"}, {"delete", "others"}, {"describe", "others"},
	} {
		if _, stderr := c.run(1, args...); strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, args[1]+": ") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
	cl.Close()
	wantLines(t, c.out("describe", "readers"),
		"readers: state Empty, assignor -, 0 members, coordinator 0",
		"TOPIC PARTITION CURRENT OFFSET LOG END OFFSET LAG MEMBER ID HOST CLIENT ID",
		"access 0 4 10 6 - - -")
	c.run(0, "delete", "readers", "others", "--if-exists")
	if out := c.out("list"); out != "" {
		t.Errorf("list after delete:\n%s", out)
	}
}

func (c *groupCase) out(args ...string) string {
	c.t.Helper()
	out, _ := c.run(0, args...)
	return out
}

// wantLines compares a table's lines, however wide its columns are.
func wantLines(t *testing.T, out string, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
