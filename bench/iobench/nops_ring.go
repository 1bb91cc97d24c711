//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) && !portable && !nouring

package iobench

import (
	"errors"

	"platter/io/disk"
	"platter/io/uring"
)

// nopRounds is what a run of empty operations has at least: a bare ring is made anew for each.
const nopRounds = 1000

// ringNops hands batches of empty operations to the backend's ring.
type ringNops struct {
	*based
	fs *uring.FS
}

func newRingNops(base *based) (load, error) {
	fs, ok := base.fs.(*uring.FS)
	if !ok {
		return nil, skip("%s has no ring", base.fs.Name())
	}
	if err := fs.Nops(base.files[0], 1, 1); errors.Is(err, disk.ErrUnsupported) {
		return nil, skip("no ring can be had")
	} else if err != nil {
		return nil, err
	}
	return &ringNops{based: base, fs: fs}, nil
}

func (r *ringNops) roundBytes() int64 { return int64(r.depth) }
func (r *ringNops) roundsMin() int    { return nopRounds }

func (r *ringNops) run(m *meter, n int) error {
	m.start()
	defer m.stop()
	err := r.fs.Nops(r.files[0], r.depth, n)
	m.round(int64(r.depth) * int64(n))
	return err
}

// bareNops are the same on a ring of the caller's own thread.
type bareNops struct{ depth int }

func newBareNops(depth int) (load, error) {
	if err := uring.Check(); err != nil {
		return nil, skip("%v", err)
	}
	return bareNops{depth}, nil
}

func (b bareNops) roundBytes() int64 { return int64(b.depth) }
func (b bareNops) roundsMin() int    { return nopRounds }
func (b bareNops) roundsMax() int    { return 0 }
func (b bareNops) close() error      { return nil }

func (b bareNops) run(m *meter, n int) error {
	m.start()
	defer m.stop()
	err := uring.BareNops(b.depth, n)
	m.round(int64(b.depth) * int64(n))
	return err
}
