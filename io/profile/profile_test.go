package profile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"
)

// machine builds a tree from lines of "path content"; lines of one path make its content together. A path that
// ends in / is a directory.
func machine(text string) fs.FS {
	tree := fstest.MapFS{}
	for line := range strings.Lines(text) {
		name, content, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			tree[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			continue
		}
		f := tree[name]
		if f == nil {
			f = &fstest.MapFile{Mode: 0o644}
			tree[name] = f
		}
		f.Data = append(f.Data, content+"\n"...)
	}
	return tree
}

// TestMachines decides for the machines in testdata.
func TestMachines(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var m fs.FS
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "machine":
				m = machine(d.Input)
				return ""
			case "profile":
				var out strings.Builder
				for _, arg := range d.CmdArgs {
					p := Of(m, arg.Key)
					fmt.Fprintf(&out, "%s\n  id %s\n", p, p.ID())
					for _, r := range p.Rows()[4:] {
						fmt.Fprintf(&out, "  %s: %s\n", r.Name, r.Value)
					}
				}
				return out.String()
			case "shares":
				a, b := Of(m, d.CmdArgs[0].Key), Of(m, d.CmdArgs[1].Key)
				return fmt.Sprintln(a.Shares(b) && b.Shares(a))
			case "defaults":
				var out strings.Builder
				for _, r := range Of(m, d.CmdArgs[0].Key).Defaults().Rows() {
					fmt.Fprintf(&out, "%s %s\n", r.Name, r.Value)
				}
				return out.String()
			}
			t.Fatalf("no command %s", d.Cmd)
			return ""
		})
	})
}

// TestDocs holds the table of the documentation to the code.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/disks.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), Table()) {
		t.Errorf("docs/disks.md does not have this table:\n%s", Table())
	}
}

// TestThisMachine: whatever runs the tests has something to say, and says the same twice.
func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	a, b := Read(dir), Read(filepath.Join(dir, "missing", "still"))
	t.Logf("%s\n%v", a, a.Rows())
	if a.Reason == "" || a.ID() != b.ID() || !a.Shares(b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1 B", 4096: "4 KiB", 1536: "1.5 KiB", 64 << 20: "64 MiB", 4e12: "3.6 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// FuzzOf: whatever the kernel shows, a profile comes out.
func FuzzOf(f *testing.F) {
	f.Add("36 35 8:1 / / rw - ext4 /dev/sda1 rw\n", "8:1", "sda1", "sda", "raid5", "/x")
	f.Add("36 35 0:1 / / rw - btrfs /dev/mapper/v rw\n", "0:1", "dm-0", "dm-0", "raid10", "/")
	f.Add("36 35 7:0 / / rw - xfs /dev/loop0 rw\n", "7:0", "loop0", "loop0", "", "/f")
	f.Fuzz(func(t *testing.T, mounts, number, name, disk, level, path string) {
		tree := fstest.MapFS{}
		put := func(name, content string) {
			if fs.ValidPath(name) && name != "." {
				tree[name] = &fstest.MapFile{Data: []byte(content)}
			}
		}
		put("proc/self/mountinfo", mounts)
		put("sys/dev/block/"+number+"/uevent", "DEVNAME="+name)
		put("sys/block/"+disk+"/"+name+"/partition", "1")
		put("sys/block/"+disk+"/md/level", level)
		put("sys/block/"+disk+"/md/raid_disks", number)
		put("sys/block/"+disk+"/slaves/"+name, "")
		put("sys/block/"+disk+"/loop/backing_file", path)
		p := Of(tree, path)
		if p.Reason == "" || p.Kind < Unknown || p.Kind > Memory {
			t.Errorf("%+v", p)
		}
		p.Rows()
		if d := p.Defaults(); d.ColdRunBytes <= 0 || d.ColdDepth <= 0 || d.BlockedCallsMax <= 0 {
			t.Errorf("%+v", d)
		}
	})
}
