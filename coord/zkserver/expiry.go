package zkserver

import (
	"fmt"
	"sync"
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/clock"
)

// repeater does something again and again until it is ended.
type repeater struct {
	mu    sync.Mutex
	stop  func() bool
	ended bool
}

// again calls do after a time, unless the end has come.
func (r *repeater) again(c clock.Clock, after time.Duration, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.stop = c.AfterFunc(after, do)
	}
}

func (r *repeater) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.stop != nil {
		r.stop()
	}
}

func (s *Server) startSweeps() {
	s.relievePollers()
	s.sweeps.again(s.config.Clock, s.sessions.sweep(), s.startSweeps)
}

// expire proposes the close of a session on the server's own account. When the log has no room for it
// the session lives until a later sweep.
func (s *Server) expire(id int64) bool {
	s.log.Info("coordinator: session expires", "session", fmt.Sprintf("%#x", id))
	ok, _ := s.queue.add(&proposal{
		entry: tree.Entry{Session: id, Op: zk.OpCloseSession},
		done: func(r tree.Result) {
			if r.Err != zk.OK {
				s.sessions.revive(id)
				return
			}
			s.stats.expired.Add(1)
		},
	}, false)
	return ok
}
