package hddsim

import (
	"testing"
	"testing/synctest"
	"time"

	"platter/io/clock"
	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/memdisk"
)

// quick is a volume on which nothing takes long, for tests of what is right rather than how long it takes.
func quick() *Volume {
	m := &Machine{}
	p := DefaultVolume()
	p.CallCost = 1
	d := NVMe()
	d.ReadLatency, d.WriteLatency, d.FlushLatency = time.Microsecond, time.Microsecond, time.Microsecond
	return NewVolume(m, NewSSD(m, d), p)
}

func TestContract(t *testing.T) {
	disktest.Run(t, func(t *testing.T) (disk.FS, string) {
		inner := memdisk.New(memdisk.Options{})
		if err := inner.MkdirAll("/d"); err != nil {
			t.Fatal(err)
		}
		return NewFS(inner, quick(), clock.Real{}), "/d"
	})
}

func modelled(t *testing.T) (*FS, *memdisk.FS) {
	t.Helper()
	m := &Machine{}
	inner := memdisk.New(memdisk.Options{})
	if err := inner.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	return NewFS(inner, NewVolume(m, hdd(m), DefaultVolume()), clock.Real{}), inner
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is written stays in memory; what was on the disk before costs a seek, and is in memory then.
func TestFSTakesModelledTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, inner := modelled(t)
		took := func(f func() error) time.Duration {
			at := time.Now()
			must(t, f())
			return time.Since(at)
		}
		f, err := fs.Open("/d/new", disk.Create)
		must(t, err)
		data := make([]byte, 1<<20)
		write := took(func() error { _, err := f.WriteV([][]byte{data}, 0); return err })
		read := took(func() error { _, err := f.ReadAt(data, 0); return err })
		sync := took(f.Sync)
		if write > time.Millisecond || read > time.Millisecond || sync < 10*time.Millisecond || sync > 80*time.Millisecond {
			t.Errorf("write %v, read %v, sync %v", write, read, sync)
		}
		must(t, f.Close())

		old, err := inner.Open("/d/old", disk.Create)
		must(t, err)
		_, err = old.WriteV([][]byte{data}, 0)
		must(t, err)
		must(t, old.Close())
		f, err = fs.Open("/d/old", disk.ReadOnly)
		must(t, err)
		if n, err := f.Resident(0, 1<<20); n != 0 || err != nil {
			t.Errorf("%d bytes are in memory, %v", n, err)
		}
		cold := took(func() error { _, err := f.ReadAt(data, 0); return err })
		warm := took(func() error { _, err := f.ReadAt(data, 0); return err })
		if n, err := f.Resident(0, 1<<20); n != 1<<20 || err != nil {
			t.Errorf("%d bytes are in memory, %v", n, err)
		}
		if cold < 5*time.Millisecond || cold > 50*time.Millisecond || warm > time.Millisecond {
			t.Errorf("cold %v, warm %v", cold, warm)
		}
		must(t, f.Advise(0, 1<<20, disk.DontNeed))
		reads := []disk.Read{{File: f, Buf: data[:4096], Pos: 500_000}}
		fs.ReadBatch(reads, true)
		if n, err := f.Resident(0, 1<<20); n != 0 || err != nil || reads[0].N != 4096 {
			t.Errorf("%d bytes are in memory after a read that should leave none, %v, %d read", n, err, reads[0].N)
		}
		must(t, f.Close())
		must(t, fs.RemoveAll("/d"))
	})
}
