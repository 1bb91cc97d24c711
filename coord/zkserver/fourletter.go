package zkserver

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

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

// version is what clients are told: the ZooKeeper whose operations these are.
const version = "3.9.0-platter"

// buildTime is when the source was committed, in srvr's form.
func buildTime() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, x := range info.Settings {
			if t, err := time.Parse(time.RFC3339, x.Value); x.Key == "vcs.time" && err == nil {
				return t.UTC().Format("2006-01-02 15:04 MST")
			}
		}
	}
	return "1970-01-01 00:00 UTC"
}

// srvr is ServerStats.toString's text, which tools parse.
func (s *Server) srvr() string {
	s.mu.RLock()
	zxid, nodes := s.tree.Zxid(), s.tree.NodeCount()
	s.mu.RUnlock()
	low, mean, high := s.stats.latencyMs()
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s, built on %s\n", version, buildTime())
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%.1f/%d\n", low, mean, high)
	fmt.Fprintf(&b, "Received: %d\nSent: %d\n", s.stats.received.Load(), s.stats.sent.Load())
	fmt.Fprintf(&b, "Connections: %d\nOutstanding: %d\n", s.conns.count(), s.queue.count())
	fmt.Fprintf(&b, "Zxid: 0x%x\nMode: standalone\nNode count: %d\n", zxid, nodes)
	return b.String()
}

// raw sends text without a frame, then closes.
func (c *conn) raw(text string) {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.out = append(c.out, text...)
	c.last = true
}
