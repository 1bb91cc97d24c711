package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"platter/engine/commitlog"
)

// TestScrubFindsRot: a bit that the disk lost under a log that was closed cleanly, which no start reads
// again, is found, said aloud, and refused to readers, and the rest stays readable.
func TestScrubFindsRot(t *testing.T) {
	r := newRig(t).open()
	r.create("web-0", 1)
	for range 5 {
		r.append("web-0", 1) // a batch each
	}
	r.close()
	const file = "data/web-0/00000000000000000000.log"
	p := []byte(r.read(file))
	p[2*len(p)/5+70] ^= 1 // in the records of the third batch
	r.put(file, string(p))

	r.open()
	l := r.s.Get(tp("web-0"))
	var paced int64
	if bad := r.s.Scrub(context.Background(), func(n int64) { paced += n }); bad != 1 {
		t.Fatalf("%d bad ranges, want 1", bad)
	}
	if paced == 0 {
		t.Error("the scrub did not pace itself")
	}
	if !strings.Contains(r.log.String(), "stored data is corrupt") {
		t.Errorf("the log says nothing: %s", r.log.String())
	}
	for offset := range int64(5) {
		rd, err := l.Read(offset, 1, 5, true)
		if err == nil {
			rd.Release()
		}
		if bad := errors.Is(err, commitlog.ErrCorrupt); bad != (offset == 2) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	r.close()
}

// TestScrubOverAnUnreadableSector: what nobody has asked for takes no directory offline, and the logs behind it are
// checked as well.
func TestScrubOverAnUnreadableSector(t *testing.T) {
	r := newRig(t, "d")
	f := r.faulty()
	r.open()
	for _, name := range []string{"a-0", "b-0"} {
		r.create(name, 1)
		r.append(name, 1)
	}
	r.script(f, "read d/*-0/*.log : EIO")
	if bad := r.s.Scrub(context.Background(), nil); bad != 0 {
		t.Errorf("%d bad ranges", bad)
	}
	if n := strings.Count(r.log.String(), "cannot be read to its end"); n != 2 {
		t.Errorf("%d logs were reported: %s", n, r.log.String())
	}
	if d := r.s.Dirs()[0]; d.Offline != nil {
		t.Error(d.Offline)
	}
}
