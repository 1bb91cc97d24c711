package zkserver

import (
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
)

const (
	containerCheckDefault     = time.Minute
	containerPerMinuteDefault = 10_000
)

// startReaping looks for containers and TTL nodes that are to go once every interval (ContainerManager).
func (s *Server) startReaping() {
	s.reaping.again(s.config.Clock, s.config.ContainerCheck, s.reap)
}

func (s *Server) reap() {
	s.mu.RLock()
	paths := s.tree.Reapable(s.config.Clock.NowMs(), s.config.ContainerNeverUsed.Milliseconds(), s.letOthers)
	s.mu.RUnlock()
	s.reapNext(paths)
}

// reapNext proposes the first path's removal, at most so many a minute; what has changed since is refused by
// the tree. After the last the next interval begins.
func (s *Server) reapNext(paths []string) {
	if len(paths) == 0 {
		s.startReaping()
		return
	}
	s.log.Debug("coordinator: container or TTL node goes", "path", paths[0])
	added, _ := s.queue.add(&proposal{
		entry: tree.Entry{Op: zk.OpDeleteContainer, Body: zk.AppendString(nil, paths[0])},
	}, false)
	if added {
		pause := time.Minute / time.Duration(s.config.ContainerPerMinute)
		s.reaping.again(s.config.Clock, pause, func() { s.reapNext(paths[1:]) })
	}
}
