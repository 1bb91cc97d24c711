package zkserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

var quiet = slog.New(slog.DiscardHandler)

// crasher drives a store through crash after crash, and holds what it recovers to what was acknowledged.
type crasher struct {
	disk  *memdisk.FS
	fs    disk.FS // the disk, perhaps with faults
	rng   *rand.Rand
	hist  []tree.Entry // every entry that may be on the disk, by zxid from 1
	acked int64        // the highest zxid whose append succeeded
}

func treeState(t *tree.Tree) []byte {
	var b []byte
	t.Capture().Encode(func(chunk []byte) error {
		b = append(b, chunk...)
		return nil
	})
	return b
}

// check compares a recovered tree with a tree made of the entries that it claims to hold.
func (c *crasher) check(got *tree.Tree) error {
	z := got.Zxid()
	if z < c.acked || z > int64(len(c.hist)) {
		return fmt.Errorf("recovered up to entry %d; %d were acknowledged, %d written", z, c.acked, len(c.hist))
	}
	want := tree.New()
	for i := range c.hist[:z] {
		want.Apply(&c.hist[i])
	}
	if !bytes.Equal(treeState(got), treeState(want)) {
		return fmt.Errorf("the tree recovered up to entry %d is not what its entries make", z)
	}
	return nil
}

// live opens the store, checks it, and works on it until the disk fails or steps are done. The error is
// a finding; a crash is none.
func (c *crasher) live(steps int) error {
	st, t, err := openStore(context.Background(), c.fs, "/data/zk", "", quiet)
	if err != nil {
		return c.finding(err)
	}
	st.zeros = st.zeros[:4096] // grow often
	if err := c.check(t); err != nil {
		return err
	}
	// What was not recovered never was; what was recovered stays.
	c.hist = c.hist[:t.Zxid()]
	c.acked = t.Zxid()
	for range steps {
		if err := c.step(st, t); err != nil {
			return c.finding(err)
		}
	}
	return c.finding(st.close())
}

// finding lets the errors of a crashed disk pass.
func (c *crasher) finding(err error) error {
	if err == nil || errors.Is(err, memdisk.ErrCrashed) {
		return nil
	}
	return err
}

func (c *crasher) step(st *store, t *tree.Tree) error {
	if c.rng.IntN(6) == 0 {
		st.roll()
		return st.saveSnapshot(t.Capture())
	}
	var batch []*proposal
	for range 1 + c.rng.IntN(5) {
		p := &proposal{entry: c.entry(t.Zxid() + 1 + int64(len(batch)))}
		batch = append(batch, p)
		c.hist = append(c.hist, p.entry)
	}
	switch err := st.append(batch); {
	case errors.Is(err, errFull):
		c.hist = c.hist[:t.Zxid()]
		return nil
	case err != nil:
		return err
	}
	for _, p := range batch {
		t.Apply(&p.entry)
	}
	c.acked = t.Zxid()
	return nil
}

// entry is a random change by one of a few sessions, some of which are not there, or no more.
func (c *crasher) entry(zxid int64) tree.Entry {
	e := tree.Entry{Zxid: zxid, TimeMs: zxid, Session: 1 + c.rng.Int64N(4)}
	switch n := c.rng.IntN(16); {
	case zxid <= 2 || n == 0:
		e.Op, e.Body = zk.OpCreateSession, tree.SessionBody{TimeoutMs: int32(zxid), Password: []byte("p")}.Append(nil)
		return e
	case n == 1:
		e.Op = zk.OpCloseSession
		return e
	case n == 2:
		acl := []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "world", ID: "anyone"}}, {Perms: 1 + c.rng.Int32N(31), ID: zk.ID{Scheme: "digest", ID: "a:b"}}}
		e.Op, e.Body = zk.OpSetACL, zk.SetACLRequest{Path: c.path(), ACL: acl, Version: -1}.Append(nil)
		return e
	case n < 6:
		var q zk.MultiRequest
		for range 1 + c.rng.IntN(4) {
			op, body := c.change(zxid)
			m := zk.MultiOp{Op: op}
			d := zk.NewDecoder(body)
			switch op {
			case zk.OpCreate:
				m.Create.Decode(&d, op)
			case zk.OpSetData:
				m.Set.Decode(&d)
			default:
				m.Target.Decode(&d)
			}
			q.Ops = append(q.Ops, m)
		}
		e.Op, e.Body = zk.OpMulti, q.Append(nil)
		return e
	}
	e.Op, e.Body = c.change(zxid)
	return e
}

func (c *crasher) path() string { return fmt.Sprintf("/n%d", c.rng.IntN(8)) }

// change is a create (of any kind), a set or a delete.
func (c *crasher) change(zxid int64) (zk.Op, []byte) {
	path, data := c.path(), bytes.Repeat([]byte{byte(zxid)}, c.rng.IntN(900))
	switch c.rng.IntN(3) {
	case 0:
		return zk.OpCreate, createBody(path, data, int32(c.rng.IntN(4)))
	case 1:
		return zk.OpSetData, setBody(path, data, -1)
	}
	return zk.OpDelete, zk.DeleteRequest{Path: path, Version: -1}.Append(nil)
}

// crashes runs one seed: lives that end in a crash at a random operation, or by a mere kill.
func crashes(seed uint64, faults string) error {
	c := &crasher{disk: memdisk.New(memdisk.Options{}), rng: rand.New(rand.NewPCG(seed, 7))}
	c.fs = c.disk
	if faults != "" {
		f := faultdisk.New(c.disk, seed, clock.Real{})
		if err := f.Script(faults); err != nil {
			return err
		}
		c.fs = f
	}
	for life := range 5 {
		c.disk.CrashAt(c.disk.Count()+1+c.rng.Int64N(30), seed+uint64(life))
		if err := c.live(12); err != nil {
			return fmt.Errorf("seed %d, life %d: %w", seed, life, err)
		}
		if c.rng.IntN(4) == 0 {
			c.disk.Kill()
		} else {
			c.disk.Crash(c.rng.Uint64())
		}
	}
	return nil
}

// TestCrashes: what was acknowledged survives a power cut at any I/O, and what is recovered is a state
// that the tree went through.
func TestCrashes(t *testing.T) {
	for seed := range uint64(300) {
		if err := crashes(seed, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryCrashPoint crashes the same life at each of its operations.
func TestEveryCrashPoint(t *testing.T) {
	for at := int64(1); ; at++ {
		c := &crasher{disk: memdisk.New(memdisk.Options{}), rng: rand.New(rand.NewPCG(1, 2))}
		c.fs = c.disk
		c.disk.CrashAt(at, uint64(at))
		if err := c.live(40); err != nil {
			t.Fatal(at, err)
		}
		if !c.disk.Crashed() {
			if at < 80 {
				t.Fatalf("only %d operations", at)
			}
			return
		}
		c.disk.Crash(uint64(at))
		if err := c.live(0); err != nil {
			t.Fatal(at, err)
		}
	}
}

// TestCrashesAreFound: syncs that do nothing must not go unnoticed.
func TestCrashesAreFound(t *testing.T) {
	for _, faults := range []string{"sync log.*: lost", "syncdir zk: lost", "sync snapshot.*: lost"} {
		found := false
		for seed := uint64(0); seed < 500 && !found; seed++ {
			found = crashes(seed, faults) != nil
		}
		if !found {
			t.Errorf("with %q nothing was found", faults)
		}
	}
}
