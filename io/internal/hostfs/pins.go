package hostfs

import (
	"sync/atomic"

	"platter/io/disk"
)

// Pins keeps a descriptor open until it was closed and the last operation has left, so that a number
// which the system gives out anew is never used by mistake, and a send to a slow peer survives a Close.
// The zero value is an open one.
type Pins struct{ state atomic.Int64 }

const pinsClosed = int64(1) << 62

// Enter begins an operation; disk.ErrClosed after Close.
func (p *Pins) Enter() error {
	for {
		s := p.state.Load()
		if s&pinsClosed != 0 {
			return disk.ErrClosed
		}
		if p.state.CompareAndSwap(s, s+1) {
			return nil
		}
	}
}

// Leave ends an operation. last: the caller closes the descriptor now.
func (p *Pins) Leave() (last bool) { return p.state.Add(-1) == pinsClosed }

// Close lets no operation in any more. last: none is under way, the caller closes the descriptor now.
func (p *Pins) Close() (last bool, err error) {
	for {
		s := p.state.Load()
		if s&pinsClosed != 0 {
			return false, disk.ErrClosed
		}
		if p.state.CompareAndSwap(s, s|pinsClosed) {
			return s == 0, nil
		}
	}
}
