package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"platter/engine/commitlog"
)

func sortedLines(lines []string) string {
	slices.Sort(lines)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestTranscripts runs the scripts in testdata: one broker's life, command by command.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var r *rig
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				var dirs []string
				for _, a := range d.CmdArgs {
					dirs = append(dirs, a.Key)
				}
				r = newRig(t, dirs...)
				return ""
			}
			r.t = t
			var out strings.Builder
			if err := r.command(d, &out); err != nil {
				fmt.Fprintf(&out, "error: %v\n", err)
			}
			return out.String()
		})
	})
}

// command runs one command of a script. Its arguments are positional.
func (r *rig) command(d *datadriven.TestData, out *strings.Builder) (err error) {
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	num := func(i int) (n int64) {
		fmt.Sscan(arg(i), &n)
		return n
	}
	switch d.Cmd {
	case "open": // [broker id]
		if r.c.BrokerID = -1; arg(0) != "" {
			r.c.BrokerID = int32(num(0))
		}
		if err := r.tryOpen(); err != nil {
			return err
		}
		out.WriteString(r.ends())
	case "identity": // broker id, cluster id
		return r.s.SetIdentity(int32(num(0)), arg(1))
	case "create": // log, id
		_, err = r.s.Create(tp(arg(0)), UUID{byte(num(1))}, commitlog.DefaultConfig())
	case "append": // log, count
		r.append(arg(0), int(num(1)))
	case "sync":
		err = r.s.Get(tp(arg(0))).Sync()
	case "trim": // log, offset
		err = r.s.Get(tp(arg(0))).TrimTo(num(1))
	case "truncate": // log, offset
		err = r.s.Get(tp(arg(0))).TruncateTo(num(1))
	case "empty": // log, offset
		err = r.s.Get(tp(arg(0))).TruncateFully(num(1))
	case "roll":
		err = r.s.Get(tp(arg(0))).Roll()
		r.s.work.wait()
	case "mark": // log, high watermark
		r.marks[tp(arg(0))] = num(1)
	case "unmark":
		clear(r.marks)
	case "delete":
		err = r.s.Delete(tp(arg(0)))
	case "remove-deleted":
		fmt.Fprintf(out, "next %d\n", r.s.RemoveDeleted(r.clock.NowMs()))
	case "checkpoint":
		err = r.s.Checkpoint()
	case "close":
		err = r.s.Close(true)
	case "abort":
		err = r.s.Close(false)
	case "kill":
		r.disk.Kill()
	case "crash": // seed
		r.disk.Crash(uint64(num(0)))
		r.boot++
	case "advance":
		var by time.Duration
		if by, err = time.ParseDuration(arg(0)); err == nil {
			r.clock.Advance(by)
		}
	case "ends":
		out.WriteString(r.ends())
	case "checkpointed":
		fmt.Fprintln(out, r.s.HighWatermarkCheckpoint(tp(arg(0))))
	case "tree":
		out.WriteString(r.tree())
	case "cat":
		out.WriteString(r.read(arg(0)))
	case "put":
		r.put(arg(0), d.Input)
	case "log":
		out.WriteString(r.log.String())
		r.log.buf.Reset()
	default:
		return fmt.Errorf("unknown command %s", d.Cmd)
	}
	return err
}
