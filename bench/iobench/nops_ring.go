//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) && !portable && !nouring

package iobench

import (
	"errors"

	"platter/io/disk"
	"platter/io/uring"
)

// nopBatches is how many batches a round of empty operations has: a bare ring is made anew for each round,
// which must not count.
func nopBatches(depth int) int { return max(1000, 4000/depth) }

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

func (r *ringNops) roundBytes() int64 { return int64(r.depth * nopBatches(r.depth)) }

func (r *ringNops) run(m *meter, n int) error {
	return nopRounds(m, n, r.roundBytes(), func() error { return r.fs.Nops(r.files[0], r.depth, nopBatches(r.depth)) })
}

func nopRounds(m *meter, n int, ops int64, round func() error) error {
	m.start()
	defer m.stop()
	for range n {
		if err := round(); err != nil {
			return err
		}
		m.round(ops)
	}
	return nil
}

// bareNops are the same on a ring of the caller's own thread.
type bareNops struct{ depth int }

func newBareNops(depth int) (load, error) {
	if err := uring.Check(); err != nil {
		return nil, skip("%v", err)
	}
	return bareNops{depth}, nil
}

func (b bareNops) roundBytes() int64 { return int64(b.depth * nopBatches(b.depth)) }
func (b bareNops) roundsMax() int    { return 0 }
func (b bareNops) close() error      { return nil }

func (b bareNops) run(m *meter, n int) error {
	return nopRounds(m, n, b.roundBytes(), func() error { return uring.BareNops(b.depth, nopBatches(b.depth)) })
}
