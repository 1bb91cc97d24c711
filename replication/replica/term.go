package replica

import "sync/atomic"

// term is one leadership of this broker. It counts the appends inside, so that its end can wait for
// them. state is twice their number, plus one once the term is over.
type term struct {
	state atomic.Int64
	empty chan struct{} // closed when the term is over and nobody is inside
}

func newTerm() *term { return &term{empty: make(chan struct{})} }

// enter lets an append in; false: the term is over.
func (t *term) enter() bool {
	for {
		s := t.state.Load()
		if s&1 != 0 {
			return false
		}
		if t.state.CompareAndSwap(s, s+2) {
			return true
		}
	}
}

func (t *term) leave() {
	if t.state.Add(-2) == 1 {
		close(t.empty)
	}
}

// end lets nobody in any more, and waits until all are out. Called once.
func (t *term) end() {
	if t.state.Add(1) == 1 {
		close(t.empty)
	}
	<-t.empty
}
