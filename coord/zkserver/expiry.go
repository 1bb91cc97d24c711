package zkserver

import (
	"fmt"
	"sync"

	"platter/coord/tree"
	"platter/coord/zk"
)

// sweeper sweeps the sessions again and again until it is ended.
type sweeper struct {
	mu    sync.Mutex
	stop  func() bool
	ended bool
}

func (s *Server) startSweeps() {
	wait := s.sessions.sweep()
	s.sweeps.mu.Lock()
	defer s.sweeps.mu.Unlock()
	if !s.sweeps.ended {
		s.sweeps.stop = s.config.Clock.AfterFunc(wait, s.startSweeps)
	}
}

func (w *sweeper) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.stop != nil {
		w.stop()
	}
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
			}
		},
	}, false)
	return ok
}
