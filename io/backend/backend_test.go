package backend

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"platter/io/disk"
)

func TestSelect(t *testing.T) {
	for _, name := range append([]string{""}, Names...) {
		fs, reason, err := Select(name)
		auto := name == "auto" || name == ""
		switch {
		case err != nil:
			if auto || name == "portable" || !strings.Contains(err.Error(), "io.backend="+name) {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, ErrNotBuilt) == slices.Contains(Built(), name) {
				t.Errorf("%s: %v, though this build has %q", name, err, Built())
			}
			continue
		case reason == "" || !slices.Contains(Names, fs.Name()):
			t.Errorf("%q gave %s, because %q", name, fs.Name(), reason)
		case !auto && fs.Name() != name:
			t.Errorf("%s gave %s", name, fs.Name())
		}
		closeIt(t, fs)
	}
	if _, _, err := Select("floppy"); err == nil || !strings.Contains(err.Error(), "psync") {
		t.Errorf("an unknown name: %v", err)
	}
}

func closeIt(t *testing.T, fs disk.FS) {
	if c, ok := fs.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestExplain: every operation has a backend of this build and a reason, for whatever was selected.
func TestExplain(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir() + "/not/there/yet"}
	for _, name := range append([]string{"auto"}, Built()...) {
		fs, _, err := Select(name)
		if err != nil {
			t.Logf("%s cannot run: %v", name, err)
			continue
		}
		choices := Explain(fs, dirs)
		if len(choices) != 22 {
			t.Errorf("%s: %d choices", name, len(choices))
		}
		for _, c := range choices {
			if c.Reason == "" || c.FileSystem == "" || !slices.Contains(dirs, c.Dir) {
				t.Errorf("%s: %+v", name, c)
			}
			if c.Backend != "none" && !slices.Contains(Built(), c.Backend) {
				t.Errorf("%s: %+v is not in this build", name, c)
			}
			if name == "psync" && c.Backend == "uring" || name == "portable" && c.Backend != "none" && c.Backend != "portable" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		closeIt(t, fs)
	}
}

// TestRingPays is the static choice, as a table.
func TestRingPays(t *testing.T) {
	ext4 := disk.Caps{FileSystem: "ext4", NoWaitRead: true}
	xfs := disk.Caps{FileSystem: "xfs", NoWaitRead: true, NoWaitAppend: true}
	tmpfs := disk.Caps{FileSystem: "tmpfs", NoWaitRead: true}
	old := disk.Caps{FileSystem: "unknown"}
	for _, c := range []struct {
		op   string
		caps disk.Caps
		pays bool
		says string
	}{
		{OpAppend, ext4, false, "kernel thread"},
		{OpAppend, xfs, false, "one call already"},
		{OpReadBatch, xfs, false, "page cache"},
		{OpReadCold, ext4, true, "one submission"},
		{OpReadCold, xfs, true, "one submission"},
		{OpReadCold, tmpfs, false, "memory"},
		{OpReadCold, old, false, "RWF_NOWAIT"},
		{OpSyncSet, ext4, true, "one submission"},
		{OpSyncSet, tmpfs, false, "memory"},
		{OpSync, ext4, false, "sets"},
	} {
		if pays, reason := ringPays(c.op, c.caps); pays != c.pays || !strings.Contains(reason, c.says) {
			t.Errorf("%s on %s: %v, %q", c.op, c.caps.FileSystem, pays, reason)
		}
	}
}
