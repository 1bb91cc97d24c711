package zkserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// filled is a disk with a log of n frames, one create each, and where the frames start.
func filled(t testing.TB, n int) (*memdisk.FS, []int64) {
	t.Helper()
	d := memdisk.New(memdisk.Options{})
	st, tr, err := openStore(context.Background(), d, "/zk", "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	var starts []int64
	for i := range n {
		e := tree.Entry{Zxid: tr.Zxid() + 1, Session: 1, Op: zk.OpCreateSession, Body: tree.SessionBody{TimeoutMs: 1}.Append(nil)}
		if i > 0 {
			e.Op, e.Body = zk.OpCreate, createBody(fmt.Sprintf("/n%d", i), []byte("data"), 0)
		}
		if err := st.append([]*proposal{{entry: e}}); err != nil {
			t.Fatal(err)
		}
		tr.Apply(&e)
		starts = append(starts, st.pos-int64(len(st.frame)))
	}
	if err := st.close(); err != nil {
		t.Fatal(err)
	}
	return d, starts
}

func overwrite(t testing.TB, d disk.FS, path string, pos int64, b []byte) {
	t.Helper()
	f, err := d.Open(path, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteV([][]byte{b}, pos); err != nil {
		t.Fatal(err)
	}
}

const firstLog = "/zk/log.0000000000000001"

func TestDamage(t *testing.T) {
	d, starts := filled(t, 10)
	open := func() (int64, error) {
		st, tr, err := openStore(context.Background(), d, "/zk", "", quiet)
		if err != nil {
			return 0, err
		}
		return tr.Zxid(), st.close()
	}
	overwrite(t, d, firstLog, starts[9]+20, []byte{0xff})
	if z, err := open(); z != 9 || err != nil {
		t.Fatalf("a torn tail: entry %d, %v", z, err)
	}
	if z, err := open(); z != 9 || err != nil {
		t.Fatalf("after the cut: entry %d, %v", z, err)
	}
	overwrite(t, d, firstLog, starts[4]+20, []byte{0xff})
	var corrupt *CorruptError
	if _, err := open(); !errors.As(err, &corrupt) || corrupt.Pos != starts[4] || corrupt.Path != firstLog {
		t.Fatalf("damage to what was acknowledged: %v", err)
	}
}

// TestMovedFrames: bytes put in or taken out, so that no frame behind stands where it was written, are damage and no
// torn tail.
func TestMovedFrames(t *testing.T) {
	for name, move := range map[string]func(b []byte) []byte{
		"in":  func(b []byte) []byte { return append([]byte("odd"), b...) },
		"out": func(b []byte) []byte { return b[3:] },
	} {
		d, starts := filled(t, 10)
		b, err := disk.ReadFile(d, firstLog, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, d, firstLog, starts[4], move(b[starts[4]:]))
		var corrupt *CorruptError
		if _, _, err := openStore(context.Background(), d, "/zk", "", quiet); !errors.As(err, &corrupt) || corrupt.Pos != starts[4] {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedSnapshot: the one before it serves, with the logs behind it.
func TestDamagedSnapshot(t *testing.T) {
	d, _ := filled(t, 5)
	var want []byte
	for range 5 {
		st, tr, err := openStore(context.Background(), d, "/zk", "", quiet)
		if err != nil {
			t.Fatal(err)
		}
		if got := treeState(tr); want != nil && string(got) != string(want) {
			t.Fatal("a tree was lost with its snapshot")
		}
		e := tree.Entry{Zxid: tr.Zxid() + 1, Session: 1, Op: zk.OpCreate, Body: createBody("/s-", nil, 2)}
		if err := st.append([]*proposal{{entry: e}}); err != nil {
			t.Fatal(err)
		}
		tr.Apply(&e)
		st.roll()
		if err := st.saveSnapshot(tr.Capture()); err != nil {
			t.Fatal(err)
		}
		fl, err := st.list()
		if err != nil || len(fl.snaps) > snapRetainMin {
			t.Fatal(fl, err)
		}
		want = treeState(tr)
		st.close()
		overwrite(t, d, "/zk/"+hexName(snapPrefix, tr.Zxid()), 100, []byte{0xff})
	}
}

// FuzzLog: whatever a log holds, it opens or is refused, and what opened opens again to the same.
func FuzzLog(f *testing.F) {
	d, starts := filled(f, 4)
	whole, err := disk.ReadFile(d, firstLog, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, 0, []byte{})
	f.Add(whole[:starts[3]+9], 3, []byte{1})
	f.Add(whole, int(starts[1]), []byte{9, 9})
	f.Fuzz(func(t *testing.T, b []byte, at int, patch []byte) {
		if at >= 0 && at+len(patch) <= len(b) {
			copy(b[at:], patch)
		}
		d := memdisk.New(memdisk.Options{})
		if err := d.MkdirAll("/zk"); err != nil {
			t.Fatal(err)
		}
		file, err := d.Open(firstLog, disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		file.WriteV([][]byte{b}, 0)
		file.Close()
		st, tr, err := openStore(context.Background(), d, "/zk", "", quiet)
		if err != nil {
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("not a CorruptError: %v", err)
			}
			return
		}
		st.close()
		st, again, err := openStore(context.Background(), d, "/zk", "", quiet)
		if err != nil || string(treeState(again)) != string(treeState(tr)) {
			t.Fatal("opened once, but not twice to the same", err)
		}
		st.close()
	})
}

// TestDiskFull: writes are refused, reads go on, and once there is room so do the writes; nothing that
// was refused comes back.
func TestDiskFull(t *testing.T) {
	d := memdisk.New(memdisk.Options{CapacityBytes: 600 << 10})
	var said bytes.Buffer
	now := clock.NewVirtual(clock.Real{}.Now())
	s, err := Start(context.Background(), Config{FS: d, Clock: now, Dir: "/zk", Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, s, 10_000)
	made, refused := 0, 0
	for i := range 20 {
		h, _ := p.call(t, zk.OpCreate, createBody(fmt.Sprint("/n", i), make([]byte, 50<<10), 0))
		switch {
		case h.Err == zk.OK && refused == 0:
			made++
		case h.Err == zk.SystemError:
			refused++
		default:
			t.Fatal(i, h)
		}
	}
	if made == 0 || refused == 0 {
		t.Fatalf("%d made, %d refused", made, refused)
	}
	if h, _ := p.call(t, zk.OpGetData, pathBody("/n0", false)); h.Err != zk.OK || h.Zxid != int64(made+1) {
		t.Fatal(h)
	}
	d.SetCapacity(0)
	if h, _ := p.call(t, zk.OpCreate, createBody("/more", nil, 0)); h.Err != zk.OK || h.Zxid != int64(made+2) {
		t.Fatal(h)
	}
	want := treeState(s.tree)
	crashed := d.CrashClone(1)
	s.Close()
	if n := strings.Count(said.String(), "writes are refused"); n != 1 {
		t.Fatalf("%d lines in a second tell of %d refused writes:\n%s", n, refused, said.String())
	}
	_, tr, err := openStore(context.Background(), crashed, "/zk", "", quiet)
	if err != nil || string(treeState(tr)) != string(want) {
		t.Fatal("the tree differs after a power cut", err)
	}
}

// TestNoDescriptors: while no file can be opened writes are refused where a new log begins, reads go on, and so do the
// writes when that is over.
func TestNoDescriptors(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		c.SnapCount = 1
		s, d := held(t, c)
		p := open(t, s, 60_000)
		script1(t, d, "open log.*: EMFILE")
		eventually(t, func() bool {
			h, _ := p.call(t, zk.OpCreate, createBody("/n-", nil, zk.FlagSequential))
			return h.Err == zk.SystemError
		})
		if h, _ := p.call(t, zk.OpGetData, pathBody("/", false)); h.Err != zk.OK {
			t.Fatal(h)
		}
		script1(t, d, "")
		if h, _ := p.call(t, zk.OpCreate, createBody("/n-", nil, zk.FlagSequential)); h.Err != zk.OK {
			t.Fatal(h)
		}
	})
}

// TestFailedSync ends the server: nothing is acknowledged, and nothing retried.
func TestFailedSync(t *testing.T) {
	d := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	s, err := Start(context.Background(), Config{FS: d, Clock: clock.Real{}, Dir: "/zk"})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, s, 10_000)
	if err := d.Script("sync log.*: EIO once"); err != nil {
		t.Fatal(err)
	}
	p.nc.Write(p.frame(zk.OpCreate, createBody("/a", nil, 0)))
	if b, err := p.read(); err == nil {
		t.Fatalf("answered with %x", b)
	}
	select {
	case <-s.Done():
	case <-time.After(60 * time.Second):
		t.Fatal("the server goes on")
	}
	if err := s.Err(); !errors.Is(err, faultdisk.ErrInjected) || !strings.Contains(err.Error(), "log") {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, faultdisk.ErrInjected) {
		t.Fatal(err)
	}
}

// TestStuckDisk: requests beyond a connection's bound wait, and do not keep a failed server from ending.
func TestStuckDisk(t *testing.T) {
	d := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	s, err := Start(context.Background(), Config{FS: d, Clock: clock.Real{}, Dir: "/zk"})
	if err != nil {
		t.Fatal(err)
	}
	first, p := open(t, s, 10_000), open(t, s, 10_000)
	if err := d.Script("sync log.*: hang"); err != nil {
		t.Fatal(err)
	}
	first.nc.Write(first.frame(zk.OpCreate, createBody("/a-", nil, 2))) // it may be the one that hangs
	for began := time.Now(); outstanding(s) == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			t.Fatal("the first request does not arrive")
		}
	}
	go func() {
		for range 2 * outstandingMax {
			p.nc.Write(p.frame(zk.OpCreate, createBody("/a-", nil, 2)))
		}
	}()
	for began := time.Now(); outstanding(s) < outstandingMax; time.Sleep(time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			t.Fatal("the requests do not gather: ", outstanding(s))
		}
	}
	if err := d.Script("sync log.*: EIO"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(60 * time.Second):
		t.Fatal("the server does not end")
	}
}

// TestHungDisk: while a commit hangs that a lone client's poller has begun itself, the others are served, and after it
// everybody is.
func TestHungDisk(t *testing.T) {
	d := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	s := start(t, Config{FS: d, Dir: "/zk", TickMs: 100, MaxSessionMs: 60_000})
	busy, other := open(t, s, 60_000), open(t, s, 60_000)
	for range 5 * aloneTurns {
		busy.call(t, zk.OpCreate, createBody("/a-", nil, 2))
	}
	if err := d.Script("sync log.*: hang"); err != nil {
		t.Fatal(err)
	}
	hung := busy.frame(zk.OpCreate, createBody("/hung", nil, 0))
	busy.nc.Write(hung)
	for began := time.Now(); outstanding(s) == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			t.Fatal("the request does not arrive")
		}
	}
	for range 3 {
		if h, _ := other.call(t, zk.OpExists, pathBody("/a-0000000000", false)); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
	if err := d.Script(""); err != nil {
		t.Fatal(err)
	}
	if b, err := busy.read(); err != nil || len(b) == 0 {
		t.Fatalf("%x, %v", b, err)
	}
	for range 3 * aloneTurns {
		if h, _ := other.call(t, zk.OpCreate, createBody("/b-", nil, 2)); h.Err != zk.OK {
			t.Fatal(h)
		}
		if h, _ := busy.call(t, zk.OpCreate, createBody("/c-", nil, 2)); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
}

// outstanding is the number of requests that wait in connections' queues.
func outstanding(s *Server) (n int) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for c := range s.conns.all {
		c.qmu.Lock()
		n += len(c.queue)
		c.qmu.Unlock()
	}
	return n
}
