package host

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"platter/engine/store"
)

// ErrHangs: nothing got on for patienceMax, since a disk does not answer. What was asked for goes on, and will be done when it does answer.
var ErrHangs = errors.New("the disk does not answer")

// patienceMax is how long the controller's words wait while none of them is done: a disk that hangs must not keep the
// broker from leading the partitions on the others.
const patienceMax = 5 * time.Second

// patience keeps account of what is under way for longer than anybody waits.
type patience struct {
	max time.Duration

	mu      sync.Mutex
	running map[store.TP]int
	late    map[store.TP]bool
}

// begin is false when an earlier word for tp is given up on and still under way: another would only queue behind it.
func (p *patience) begin(tp store.TP) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late[tp] {
		return false
	}
	p.running[tp]++
	return true
}

func (p *patience) end(tp store.TP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[tp]--; p.running[tp] == 0 {
		delete(p.running, tp)
		delete(p.late, tp)
	}
}

// giveUp marks what is still under way.
func (p *patience) giveUp(tp store.TP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[tp] > 0 {
		p.late[tp] = true
	}
}

// outcome is what became of one of tps.
type outcome struct {
	i   int
	err error
}

// workersMin is enough to keep a disk busy; the work is mostly opening files.
const workersMin = 16

// each calls do for each of tps, some at a time, and returns their errors, in order. It waits for the next one no longer than there
// is patience: what is not done then has ErrHangs.
func (h *Host) each(tps []store.TP, do func(i int) error) []error {
	var next atomic.Int64
	var over atomic.Bool
	done := make(chan outcome, len(tps)) // with room for those that nobody waits for any more
	work := func() {
		for i := int(next.Add(1) - 1); i < len(tps) && !over.Load(); i = int(next.Add(1) - 1) {
			if !h.patience.begin(tps[i]) {
				done <- outcome{i, ErrHangs}
				continue
			}
			err := do(i)
			h.patience.end(tps[i])
			done <- outcome{i, err}
		}
	}
	for range min(len(tps), max(workersMin, 4*runtime.GOMAXPROCS(0))) {
		go work()
	}
	errs, got := make([]error, len(tps)), make([]bool, len(tps))
	limit := h.clock.After(h.patience.max)
	for range tps {
		select {
		case o := <-done:
			errs[o.i], got[o.i] = o.err, true
			limit = h.clock.After(h.patience.max)
		case <-limit:
			over.Store(true)
			for i, tp := range tps {
				if !got[i] {
					errs[i] = ErrHangs
					h.patience.giveUp(tp)
				}
			}
			return errs
		}
	}
	return errs
}
