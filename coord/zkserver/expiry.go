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

// expire proposes the close of a session on the server's own account.
func (s *Server) expire(id int64) bool {
	s.log.Info("coordinator: session expired", "session", fmt.Sprintf("%#x", id))
	return s.queue.add(&proposal{entry: tree.Entry{Session: id, Op: zk.OpCloseSession}})
}
