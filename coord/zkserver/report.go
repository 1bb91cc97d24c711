package zkserver

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"platter/io/disk"
)

// serverReport is the server at one time.
type serverReport struct {
	received, sent           int64
	minMs, maxMs             int64
	meanMs                   float64
	connections, outstanding int
	zxid                     int64
	nodes                    int // with the root counted twice, as ZooKeeper does
	ephemerals               int
	dataBytes                int64
	sessions                 int
	uptimeMs                 int64
}

func (s *Server) report() serverReport {
	r := serverReport{
		received: s.stats.received.Load(), sent: s.stats.sent.Load(), connections: s.conns.count(),
		outstanding: s.queue.count(), uptimeMs: s.config.Clock.Now().Sub(s.startedAt).Milliseconds(),
	}
	r.minMs, r.meanMs, r.maxMs = s.stats.latencyMs()
	r.sessions = s.sessions.count()
	s.mu.RLock()
	defer s.mu.RUnlock()
	r.zxid, r.nodes, r.dataBytes = s.tree.Zxid(), s.tree.NodeCount()+1, s.tree.DataBytes()
	r.ephemerals = s.tree.EphemeralCount()
	return r
}

func (s *Server) connReports() []connReport {
	var out []connReport
	for _, c := range s.conns.list() {
		out = append(out, c.report())
	}
	slices.SortFunc(out, func(a, b connReport) int { return strings.Compare(a.peer, b.peer) })
	return out
}

// settingsReport is what conf tells beside the settings themselves.
type settingsReport struct {
	port               int
	dir, logDir        string
	dirBytes, logBytes int64
}

func (s *Server) settings() settingsReport {
	r := settingsReport{dir: s.store.dir, logDir: s.store.logDir}
	if a, ok := s.ln.Addr().(*net.TCPAddr); ok {
		r.port = a.Port
	}
	r.dirBytes, r.logBytes = s.dirBytes(r.dir), s.dirBytes(r.logDir)
	return r
}

// dirBytes is the size of a directory's files. What cannot be read, or is gone already, does not count.
func (s *Server) dirBytes(dir string) (bytes int64) {
	infos, err := s.config.FS.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, in := range infos {
		f, err := s.config.FS.Open(filepath.Join(dir, in.Name), disk.ReadOnly)
		if err != nil {
			continue
		}
		if size, err := f.Size(); err == nil {
			bytes += size
		}
		f.Close()
	}
	return bytes
}

// lease is one session or connection that ends unless its client is heard of.
type lease struct {
	session int64
	peer    string
}

func countAll(sets map[int64][]lease) (n int) {
	for _, list := range sets {
		n += len(list)
	}
	return n
}

// leases gives sessions and connections by the time (tracker time, rounded up to a tick) when they end.
func (s *Server) leases() (sessions, connections map[int64][]lease) {
	sessions, connections = map[int64][]lease{}, map[int64][]lease{}
	s.sessions.each(func(x *session) {
		at := s.roundUp(x.deadlineMs())
		sessions[at] = append(sessions[at], lease{session: x.id})
	})
	for _, c := range s.conns.list() {
		l := lease{peer: c.peer.String()}
		at := s.sessions.nowMs() + c.sinceMs + handshakeTime.Milliseconds() - s.config.Clock.NowMs()
		if x := c.attached.Load(); x != nil {
			l.session, at = x.id, x.deadlineMs()
		}
		at = s.roundUp(at)
		connections[at] = append(connections[at], l)
	}
	return sessions, connections
}

func (s *Server) roundUp(ms int64) int64 {
	tick := int64(s.config.TickMs)
	return (ms/tick + 1) * tick
}

// wallTime is when tracker time comes.
func (s *Server) wallTime(ms int64) string {
	in := time.Duration(ms-s.sessions.nowMs()) * time.Millisecond
	return time.UnixMilli(s.config.Clock.NowMs()).Add(in).UTC().Format(dumpTime)
}

func (t *tracker) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// each calls f for every session, with the tracker locked, but not for long at a time.
func (t *tracker) each(f func(*session)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	looked := 0
	for _, x := range t.byID {
		f(x)
		if looked++; looked%lookedAtOnce == 0 {
			t.mu.Unlock()
			t.mu.Lock()
		}
	}
}

// lookedAtOnce is how much of a long walk is done before others have their turn.
const lookedAtOnce = 1000

// letOthers has the tree, which is locked for reading, go to whoever waits for it.
func (s *Server) letOthers() {
	s.mu.RUnlock()
	s.mu.RLock()
}

// ephemerals gives the ephemeral nodes by session, sorted.
func (s *Server) ephemerals() map[int64][]string {
	out := s.unsortedEphemerals()
	for _, paths := range out {
		slices.Sort(paths)
	}
	return out
}

func (s *Server) unsortedEphemerals() map[int64][]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out, looked := map[int64][]string{}, 0
	pause := func() {
		if looked++; looked%lookedAtOnce == 0 {
			s.letOthers()
		}
	}
	for id := range s.tree.Sessions() {
		for path := range s.tree.Ephemerals(id) {
			out[id] = append(out[id], path)
			pause()
		}
		pause()
	}
	return out
}

// watchLists gives data watches by session and by path, sorted.
func (s *Server) watchLists() (bySession map[int64][]string, byPath map[string][]int64) {
	bySession, byPath = map[int64][]string{}, map[string][]int64{}
	s.watches.Each(func(c *conn, path string) {
		if x := c.attached.Load(); x != nil {
			bySession[x.id] = append(bySession[x.id], path)
			byPath[path] = append(byPath[path], x.id)
		}
	})
	for _, paths := range bySession {
		slices.Sort(paths)
	}
	for _, ids := range byPath {
		slices.Sort(ids)
	}
	return bySession, byPath
}

// environment is what envi tells. Where the real one speaks of Java this one says what it is instead.
func environment() []field {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	const mb = 1 << 20
	megabytes := func(n uint64) string { return fmt.Sprint(n/mb, "MB") }
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	home, _ := os.UserHomeDir()
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	most := debug.SetMemoryLimit(-1)
	if most == math.MaxInt64 {
		most = int64(m.Sys) // there is no limit
	}
	return []field{
		{"zookeeper.version", fullVersion()}, {"host.name", host},
		{"java.version", runtime.Version()}, {"java.vendor", "Go"}, {"java.home", ""},
		{"java.class.path", os.Args[0]}, {"java.library.path", ""}, {"java.io.tmpdir", os.TempDir()},
		{"java.compiler", runtime.Compiler}, {"os.name", osName()}, {"os.arch", runtime.GOARCH}, {"os.version", ""},
		{"user.name", name}, {"user.home", home}, {"user.dir", dir},
		{"os.memory.free", megabytes(m.HeapIdle - m.HeapReleased)},
		{"os.memory.max", megabytes(uint64(max(most, 0)))},
		{"os.memory.total", megabytes(m.Sys)},
	}
}

// osName is the system's name as Java spells it.
func osName() string {
	name := runtime.GOOS
	return strings.ToUpper(name[:1]) + name[1:]
}

// descriptors are those that are open and how many may be; -1 where the system does not tell by files.
func (s *Server) descriptors() (open, most int64) {
	open, most = -1, -1
	if infos, err := s.config.FS.ReadDir("/proc/self/fd"); err == nil {
		open = int64(len(infos))
	}
	f, err := s.config.FS.Open("/proc/self/limits", disk.ReadOnly)
	if err != nil {
		return open, most
	}
	defer f.Close()
	var text [4 << 10]byte
	n, _ := f.ReadAt(text[:], 0) // the end of the file comes early
	for line := range strings.Lines(string(text[:n])) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			fmt.Sscan(rest, &most)
		}
	}
	return open, most
}
