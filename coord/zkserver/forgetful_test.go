package zkserver

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// forgetful is a disk with a page cache as Linux has it: what a failed sync should have written can still be read, but
// counts as written, and no later sync writes it.
type forgetful struct {
	disk.FS             // the cache
	platter *memdisk.FS // what is left when the power goes
	fails   bool        // the next sync does
}

func (d *forgetful) Open(path string, mode disk.Mode) (disk.File, error) {
	f, err := d.FS.Open(path, mode)
	if err != nil {
		return nil, err
	}
	under, err := d.platter.Open(path, mode)
	if err != nil {
		return nil, err
	}
	return &forgetfulFile{File: f, under: under, disk: d}, nil
}

type forgetfulFile struct {
	disk.File
	under disk.File
	disk  *forgetful
	dirty []func() error
}

func (f *forgetfulFile) WriteV(bufs [][]byte, pos int64) (int64, error) {
	b := slices.Concat(bufs...)
	f.dirty = append(f.dirty, func() error {
		_, err := f.under.WriteV([][]byte{b}, pos)
		return err
	})
	return f.File.WriteV(bufs, pos)
}

func (f *forgetfulFile) Truncate(size int64) error {
	f.dirty = append(f.dirty, func() error { return f.under.Truncate(size) })
	return f.File.Truncate(size)
}

func (f *forgetfulFile) Sync() error {
	dirty := f.dirty
	f.dirty = nil
	if f.disk.fails {
		f.disk.fails = false
		return faultdisk.ErrInjected
	}
	for _, do := range dirty {
		if err := do(); err != nil {
			return err
		}
	}
	return f.File.Sync()
}

func (f *forgetfulFile) Close() error {
	f.under.Close()
	return f.File.Close()
}

// TestFailedSyncIsForgotten: a frame whose sync has failed is not built upon because it can be read: what is
// acknowledged after the restart is there when the power goes.
func TestFailedSyncIsForgotten(t *testing.T) {
	for _, before := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			d := &forgetful{FS: memdisk.New(memdisk.Options{}), platter: memdisk.New(memdisk.Options{})}
			if err := d.platter.MkdirAll("/zk"); err != nil {
				t.Fatal(err)
			}
			open := func(fs disk.FS) (*store, *tree.Tree) {
				t.Helper()
				st, tr, err := openStore(context.Background(), fs, "/zk", "", quiet)
				if err != nil {
					t.Fatal(err)
				}
				return st, tr
			}
			add := func(st *store, tr *tree.Tree) error {
				e := tree.Entry{Zxid: tr.Zxid() + 1, Session: 1, Op: zk.OpCreateSession, Body: tree.SessionBody{TimeoutMs: 1}.Append(nil)}
				if e.Zxid > 1 {
					e.Op, e.Body = zk.OpCreate, createBody("/n-", []byte("data"), zk.FlagSequential)
				}
				if err := st.append([]*proposal{{entry: e}}); err != nil {
					return err
				}
				tr.Apply(&e)
				return nil
			}
			st, tr := open(d)
			for range before {
				if err := add(st, tr); err != nil {
					t.Fatal(err)
				}
			}
			d.fails = true
			if err := add(st, tr); err == nil {
				t.Fatal("the sync did not fail")
			}
			st.unlock() // killed: nobody cuts the frame off
			st, tr = open(d)
			for range 2 {
				if err := add(st, tr); err != nil {
					t.Fatal(err)
				}
			}
			st.close()
			_, after := open(d.platter)
			if string(treeState(after)) != string(treeState(tr)) {
				t.Fatalf("the tree is at %d after a power cut, and was at %d", after.Zxid(), tr.Zxid())
			}
		})
	}
}
