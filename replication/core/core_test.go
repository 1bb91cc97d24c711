package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts plays the scripts in testdata. Each prints the work that an event gives and the state
// after it.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *Core
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var w Work
			var err error
			switch d.Cmd {
			case "new":
				cfg := Config{Self: arg[int32](t, d, "self", 1), MinISR: arg(t, d, "min", 1), LagTimeMaxMs: arg[int64](t, d, "lag", 30)}
				if d.HasArg("durable-class") {
					cfg.Class = Durable
				}
				c = New(cfg, ends(t, d), arg[int64](t, d, "hw", 0))
			case "assign":
				w, err = c.Assign(Assignment{
					Leader:         arg[int32](t, d, "leader", NoLeader),
					LeaderEpoch:    arg[int32](t, d, "epoch", 0),
					PartitionEpoch: arg[int32](t, d, "version", 0),
					ISR:            ids(t, d, "isr"),
					Replicas:       ids(t, d, "replicas"),
				}, arg[int64](t, d, "now", 0))
			case "log":
				w = c.Appended(ends(t, d))
			case "fetch":
				offset := arg[int64](t, d, "offset", 0)
				w, err = c.Fetched(Fetch{
					Broker:      arg[int32](t, d, "from", 0),
					BrokerEpoch: arg[int64](t, d, "broker-epoch", 0),
					LeaderEpoch: arg(t, d, "epoch", c.LeaderEpoch()),
					Offset:      offset,
					Durable:     arg(t, d, "durable", offset),
					NowMs:       arg[int64](t, d, "now", 0),
				})
			case "leader-said":
				w = c.LeaderSaid(arg[int64](t, d, "hw", 0))
			case "tick":
				w = c.Tick(arg[int64](t, d, "now", 0))
			case "altered":
				w = c.Altered(arg(t, d, "epoch", c.LeaderEpoch()), arg[int32](t, d, "version", 0), ids(t, d, "isr"))
			case "refused":
				w = c.Refused(arg(t, d, "epoch", c.LeaderEpoch()), arg(t, d, "version", c.PartitionEpoch()))
			case "config":
				w = c.SetConfig(arg(t, d, "min", 1), Written)
			default:
				d.Fatalf(t, "unknown command")
			}
			return show(c, w, err)
		})
	})
}

func show(c *Core, w Work, err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	var work []string
	for _, x := range []struct {
		name string
		on   bool
	}{{"lead", w.Lead}, {"follow", w.Follow}, {"lost", w.Lost}, {"moved", w.Moved}} {
		if x.on {
			work = append(work, x.name)
		}
	}
	if w.Propose != nil {
		work = append(work, fmt.Sprintf("propose%v", w.Propose))
	}
	if work != nil {
		fmt.Fprintf(&b, "work: %s\n", strings.Join(work, " "))
	}
	role := map[Role]string{Idle: "idle", Leader: "leader", Follower: "follower"}[c.Role()]
	fmt.Fprintf(&b, "%s epoch=%d hw=%d end=%d isr=%v", role, c.LeaderEpoch(), c.HighWatermark(), c.Ends().Written, c.ISR())
	if c.Role() == Leader && c.Enough() != nil {
		b.WriteString(" under-min-isr")
	}
	return b.String() + "\n"
}

func arg[T int | int32 | int64](t *testing.T, d *datadriven.TestData, name string, otherwise T) T {
	if !d.HasArg(name) {
		return otherwise
	}
	var v int64
	d.ScanArgs(t, name, &v)
	return T(v)
}

func ends(t *testing.T, d *datadriven.TestData) Ends {
	end := arg[int64](t, d, "end", 0)
	return Ends{Start: arg[int64](t, d, "start", 0), Written: end, Durable: arg(t, d, "durable", end)}
}

// ids reads isr=(1,2).
func ids(t *testing.T, d *datadriven.TestData, name string) []int32 {
	var out []int32
	for _, a := range d.CmdArgs {
		if a.Key != name {
			continue
		}
		for i := range a.Vals {
			var v int
			a.Scan(t, i, &v)
			out = append(out, int32(v))
		}
	}
	return out
}
