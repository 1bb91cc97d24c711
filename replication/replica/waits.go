package replica

import "slices"

// waits are the acks=all appends that are written but not committed, by their last offset. They come
// nearly in order: only a duplicate's offsets may lie below others'.
type waits struct {
	ops []*op
}

func (w *waits) add(o *op) {
	i := len(w.ops)
	for i > 0 && w.ops[i-1].result.LastOffset > o.result.LastOffset {
		i--
	}
	w.ops = slices.Insert(w.ops, i, o)
}

// takeBelow removes and returns those whose last offset is below the high watermark.
func (w *waits) takeBelow(highWatermark int64) []*op {
	n := 0
	for n < len(w.ops) && w.ops[n].result.LastOffset < highWatermark {
		n++
	}
	if n == 0 {
		return nil
	}
	out := slices.Clone(w.ops[:n])
	clear(w.ops[:n])
	w.ops = w.ops[n:] // those behind stay where they are: there may be many
	return out
}

func (w *waits) takeAll() []*op {
	out := w.ops
	w.ops = nil
	return out
}

func (w *waits) remove(o *op) {
	if i := slices.Index(w.ops, o); i >= 0 {
		w.ops = slices.Delete(w.ops, i, i+1)
	}
}
