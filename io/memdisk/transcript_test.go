package memdisk

import (
	"bytes"
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"platter/io/clock"
	"platter/io/disk"
)

// TestCrashes runs transcripts. "do" is operations, a line each. "crash" lists every outcome that some
// of 400 seeds gave, "now" what readers see: the entries in order, a file with its content, where a
// letter is a sector full of it, a dot one of zeros, and +n the bytes of a last part of a sector.
func TestCrashes(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		m := New(Options{Clock: clock.NewVirtual(time.Unix(0, 0))})
		datadriven.RunTest(t, file, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "new":
				m = New(Options{Clock: clock.NewVirtual(time.Unix(0, 0))})
				return ""
			case "do":
				for _, line := range strings.Split(td.Input, "\n") {
					if err := do(m, strings.Fields(line)); err != nil {
						return fmt.Sprintln(err)
					}
				}
				return ""
			case "now":
				return show(m) + "\n"
			case "kill":
				m.Kill()
				return show(m) + "\n"
			case "crash":
				seen := map[string]bool{}
				for seed := range uint64(400) {
					seen[show(m.CrashClone(seed))] = true
				}
				var lines []string
				for l := range seen {
					lines = append(lines, l)
				}
				sort.Strings(lines)
				return strings.Join(lines, "\n") + "\n"
			}
			return "unknown command"
		})
	})
}

func do(m *FS, w []string) error {
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(w[i], 10, 64)
		return n
	}
	switch w[0] {
	case "mkdir":
		return m.MkdirAll(w[1])
	case "syncdir":
		return m.SyncDir(w[1])
	case "rename":
		return m.Rename(w[1], w[2])
	case "remove":
		return m.RemoveAll(w[1])
	}
	f, err := m.Open(w[1], disk.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	switch w[0] {
	case "create":
	case "write": // write FILE SECTOR LETTERS: a sector for each
		var bufs [][]byte
		for _, letter := range w[3] {
			bufs = append(bufs, bytes.Repeat([]byte{byte(letter)}, disk.SectorBytes))
		}
		_, err = f.WriteV(bufs, number(2)*disk.SectorBytes)
	case "bytes": // bytes FILE POS LETTERS: a byte for each
		_, err = f.WriteV([][]byte{[]byte(w[3])}, number(2))
	case "truncate": // truncate FILE SECTORS
		err = f.Truncate(number(2) * disk.SectorBytes)
	case "sync":
		err = f.Sync()
	default:
		err = fmt.Errorf("unknown operation %s", w[0])
	}
	return err
}

func show(m *FS) string {
	var all []string
	var walk func(dir string)
	walk = func(dir string) {
		infos, err := m.ReadDir(dir)
		if err != nil {
			all = append(all, err.Error())
		}
		for _, i := range infos {
			p := path.Join(dir, i.Name)
			if i.IsDir {
				all = append(all, p+"/")
				walk(p)
				continue
			}
			content, err := disk.ReadFile(m, p, 1<<20)
			all = append(all, p+"["+sectors(content)+"]")
			if err != nil {
				all = append(all, err.Error())
			}
		}
	}
	walk("/")
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " ")
}

func sectors(p []byte) string {
	var out strings.Builder
	for len(p) > 0 {
		s := p[:min(len(p), disk.SectorBytes)]
		p = p[len(s):]
		switch {
		case bytes.Count(s, s[:1]) < len(s):
			fmt.Fprintf(&out, "(%s)", strings.ReplaceAll(strings.TrimRight(string(s), "\x00"), "\x00", "."))
		case s[0] == 0:
			out.WriteByte('.')
		default:
			out.WriteByte(s[0])
		}
		if len(s) < disk.SectorBytes {
			fmt.Fprintf(&out, "+%d", len(s))
		}
	}
	return out.String()
}
