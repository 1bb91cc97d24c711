package spindle

import "platter/io/disk"

// WriteBehindMin is the shortest run that is ever written behind: short ones ruin a disk (flushing every 128 KiB took one
// from 158 to 19 MB/s).
const WriteBehindMin = 8 << 20

// writeBehind starts writeback of what was appended, once a long run of it has gathered; one run of a device at a time. While
// one is on its way the next gets longer. It does not wait: starting writeback may block where the device's queue is full.
func (t *tracked) writeBehind(f disk.File, pos, n int64) {
	run := t.sp.p.WriteBehindBytes
	if run <= 0 {
		return
	}
	run = max(run, WriteBehindMin)
	t.mu.Lock()
	if pos < t.behind || t.behindEnd != pos {
		t.behind = pos // cut, or opened anew
	}
	t.behindEnd = pos + n
	from, due := t.behind, t.behindEnd-t.behind >= run
	if !due {
		t.mu.Unlock()
		return
	}
	select {
	case t.sp.behind <- struct{}{}:
		t.behind = t.behindEnd
	default:
		due = false
	}
	end := t.behindEnd
	t.mu.Unlock()
	if !due {
		return
	}
	go func() {
		defer func() { <-t.sp.behind }()
		if f.WriteBehind(from, end-from) == nil { // a hint: a failure of the disk is the next sync's to tell
			t.sp.behindBytes.Add(end - from)
		}
	}()
}
