package commitlog

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/engine/batch"
)

// The transcripts under testdata: a script of operations, and what the log answers. Run with -rewrite to
// write the answers anew, and read the diff.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return
		}
		var r *rig
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				r = newRig(t, func(c *Config) {
					c.SegmentBytes, c.IndexIntervalBytes, c.RetentionMs = 1000, 200, -1
					scan(t, d, "segment.bytes", &c.SegmentBytes)
					scan(t, d, "flush.messages", &c.FlushMessages)
				})
				return r.state()
			}
			return r.command(t, d)
		})
	})
}

func scan(t *testing.T, d *datadriven.TestData, key string, to any) {
	if d.HasArg(key) {
		d.ScanArgs(t, key, to)
	}
}

func (r *rig) command(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	outcome := func(err error) {
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
	}
	at, n := int64(0), 1
	scan(t, d, "at", &at)
	scan(t, d, "n", &n)
	r.logs = nil
	switch d.Cmd {
	case "append":
		out.WriteString(r.transcribeAppends(t, d, n))
	case "sync":
		outcome(r.log.Sync())
	case "checkpoint":
		r.rp = r.log.RecoveryPoint()
	case "roll":
		outcome(r.log.Roll())
	case "jobs":
		r.runJobs()
	case "truncate":
		outcome(r.log.TruncateTo(at))
	case "truncate-fully":
		outcome(r.log.TruncateFully(at))
	case "trim":
		outcome(r.log.TrimTo(at))
	case "leader":
		outcome(r.log.AssignEpoch(int32(at)))
	case "kill":
		r.kill()
	case "crash":
		r.crash(uint64(at))
	case "close":
		outcome(r.log.Close(true))
		r.rp = r.log.RecoveryPoint()
		r.open(func(o *Options) { o.CleanShutdown = true })
	case "read":
		for _, b := range r.all() {
			fmt.Fprintf(&out, "%d..%d leader %d producer %d sequence %d\n", b.BaseOffset(), b.LastOffset(), b.LeaderEpoch(), b.ProducerID(), b.BaseSequence())
		}
	case "epochs":
		fmt.Fprintln(&out, r.log.epochs.Entries())
	case "files":
		out.WriteString(r.files(t))
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	for _, line := range r.logs {
		fmt.Fprintf(&out, "log: %s\n", strings.ReplaceAll(line, "/data/t-0: ", ""))
	}
	return out.String() + r.state()
}

func (r *rig) state() string {
	e := r.log.Ends()
	return fmt.Sprintf("%d to %d, durable to %d, %d segments\n", e.Start, e.Written, e.Durable, r.log.SegmentCount())
}

func (r *rig) transcribeAppends(t *testing.T, d *datadriven.TestData, n int) string {
	var out strings.Builder
	size, producer, sequence, leader := 100, int64(-1), int32(-1), int32(0)
	scan(t, d, "size", &size)
	scan(t, d, "producer", &producer)
	scan(t, d, "sequence", &sequence)
	scan(t, d, "leader", &leader)
	for range n {
		b := records(2, size, func(bl *batch.Builder) {
			if producer >= 0 {
				bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = producer, 0, sequence
			}
		})
		sequence += 2
		r.log.Enqueue(&Append{Batches: []batch.Batch{b}, LeaderEpoch: leader, Done: func(a Appended) {
			switch {
			case a.Err != nil:
				fmt.Fprintf(&out, "error: %v\n", a.Err)
			case a.Duplicate:
				fmt.Fprintf(&out, "duplicate of %d..%d\n", a.BaseOffset, a.LastOffset)
			default:
				fmt.Fprintf(&out, "%d..%d\n", a.BaseOffset, a.LastOffset)
			}
		}})
	}
	return out.String()
}

func (r *rig) files(t *testing.T) string {
	infos, err := r.fs.ReadDir("/data/t-0")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, in := range infos {
		lines = append(lines, fmt.Sprintf("%s %d\n", in.Name, in.SizeBytes))
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}
