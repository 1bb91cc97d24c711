package zkserver

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// stats is what srvr tells.
type stats struct {
	started        time.Time
	received, sent atomic.Int64
}

// fourLetterWords are those that ZooKeeper knows.
var fourLetterWords = []string{
	"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "ruok", "stmk", "srst", "srvr", "stat",
	"wchc", "wchp", "wchs", "mntr", "isro", "hash",
}

// fourLetter answers a four-letter word that came in place of a connect request's length, and reports
// whether it was one.
func (s *Server) fourLetter(c *conn, word string) bool {
	var text string
	switch word {
	case "ruok":
		text = "imok"
	case "srvr":
		text = s.srvr()
	default:
		if !slices.Contains(fourLetterWords, word) {
			return false
		}
		text = word + " is not executed because it is not in the whitelist."
	}
	c.raw(text)
	return true
}

func (s *Server) srvr() string {
	s.mu.RLock()
	zxid, nodes := s.tree.Zxid(), s.tree.NodeCount()
	s.mu.RUnlock()
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: 3.9.0-platter\n")
	fmt.Fprintf(&b, "Received: %d\nSent: %d\n", s.stats.received.Load(), s.stats.sent.Load())
	fmt.Fprintf(&b, "Connections: %d\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		s.conns.count(), zxid, nodes)
	return b.String()
}

// raw sends text without a frame, then closes.
func (c *conn) raw(text string) {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.out = append(c.out, text...)
	c.last = true
}
