package api

import "sync/atomic"

// pins bounds the file ranges that fetches hold until their replies are sent, so that clients that read
// many partitions, or read slowly, leave files for everybody else to open.
type pins struct {
	used atomic.Int64
	max  int64         // of all fetches
	each int64         // of one fetch
	turn atomic.Uint64 // where the next large fetch starts
}

// pinsDefault is for a process whose descriptors nobody has counted.
const pinsDefault = 256

func (p *pins) init(limit int) {
	if limit <= 0 {
		limit = pinsDefault
	}
	p.max, p.each = int64(limit), max(1, int64(limit)/8)
}

// room says whether a fetch that holds so many ranges may take another. Its first one it may always, or
// it would get nowhere.
func (p *pins) room(held int64) bool {
	return held == 0 || held < p.each && p.used.Load() < p.max
}

func (p *pins) take(n int) int64 {
	p.used.Add(int64(n))
	return int64(n)
}

func (p *pins) give(n int64) {
	if n != 0 {
		p.used.Add(-n)
	}
}
