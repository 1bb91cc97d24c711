package zkserver

import (
	"fmt"

	"platter/coord/tree"
	"platter/coord/zk"
)

// expiryLoop sweeps the sessions until the server ends.
func (s *Server) expiryLoop() {
	defer s.running.Done()
	for {
		select {
		case <-s.stop:
			return
		case <-s.config.Clock.After(s.sessions.sweep()):
		}
	}
}

// expire proposes the close of a session on the server's own account. When the log has no room for it
// the session lives until the next sweep.
func (s *Server) expire(id int64) bool {
	s.log.Info("coordinator: session expires", "session", fmt.Sprintf("%#x", id))
	return s.queue.add(&proposal{
		entry: tree.Entry{Session: id, Op: zk.OpCloseSession},
		done: func(r tree.Result) {
			if r.Err != zk.OK {
				s.sessions.revive(id)
			}
		},
	})
}
