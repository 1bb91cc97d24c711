// Command zkload measures a ZooKeeper-compatible server from outside, over its protocol alone.
//
//	zkload compare                              ours and Apache's side by side: rates, latencies, memory, start
//	zkload bench   -addr H:P -sessions 1,8,64   one server under load
//	zkload fanout  -addr H:P -watchers 1000     how soon the watchers of one node hear of a change
//	zkload expiry  -addr H:P -timeouts 2s,6s    how long after its owner's death an ephemeral node goes
//	zkload startup -addr H:P -- COMMAND...      from a process's start to its first answers
//	zkload snapshot -nodes 1000000 -dur 30s     what a snapshot costs those who write meanwhile (ours)
//	zkload wipe    -addr H:P                    deletes every node but /zookeeper
//
// A figure is worth something beside another that was taken in the same run: use compare.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"platter/tools/zkwire"
)

// options are the flags of all commands; each reads those that concern it.
type options struct {
	addr     string
	sessions string
	depth    string
	ops      string
	dur      time.Duration
	size     int
	nodes    int
	watchers int
	rounds   int
	timeouts string
	trials   int
	path     string
	timeout  time.Duration
	dir      string
	ours     string
	json     string
	rest     []string
}

func main() {
	commands := map[string]func(*options) error{
		"bench": bench, "fanout": fanout, "expiry": expiry, "holder": holder, "startup": startup,
		"wipe": wipe, "compare": compare, "bare": bare, "snapshot": snapshot,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: zkload compare|bench|fanout|expiry|startup|snapshot|wipe [flags]")
		os.Exit(2)
	}
	o := &options{}
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	f.StringVar(&o.addr, "addr", "127.0.0.1:2181", "the server's `host:port`")
	f.StringVar(&o.sessions, "sessions", "1,64", "numbers of sessions")
	f.StringVar(&o.depth, "depth", "1", "requests in flight for each session")
	f.StringVar(&o.ops, "ops", "get,set,create", "operations: create, get, set, exists, children, delete")
	f.DurationVar(&o.dur, "dur", time.Second, "time of each cell")
	f.IntVar(&o.size, "size", 100, "bytes of data")
	f.IntVar(&o.nodes, "nodes", 1_000_000, "snapshot: nodes in the tree")
	f.IntVar(&o.watchers, "watchers", 1000, "sessions that watch one node")
	f.IntVar(&o.rounds, "rounds", 5, "rounds")
	f.StringVar(&o.timeouts, "timeouts", "2s,6s,18s", "session timeouts")
	f.IntVar(&o.trials, "trials", 8, "processes killed for each timeout")
	f.StringVar(&o.path, "path", "", "holder: its ephemeral node")
	f.DurationVar(&o.timeout, "timeout", 6*time.Second, "holder: its session timeout")
	f.StringVar(&o.dir, "dir", "", "compare, snapshot, bare: where the data is kept; the disk that is measured (compare: a new directory in the working one)")
	f.StringVar(&o.ours, "ours", "", "compare, snapshot: our server's `binary`, run as BINARY coord; built when none is named")
	f.StringVar(&o.json, "json", "", "compare: write the table to this file too")
	_ = f.Parse(os.Args[2:]) // ends the process on an error
	o.rest = f.Args()
	if err := commands[os.Args[1]](o); err != nil {
		fmt.Fprintln(os.Stderr, "zkload:", err)
		os.Exit(1)
	}
}

// list parses numbers or durations, one behind the other with commas.
func list[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, x := range strings.Split(s, ",") {
		v, err := parse(strings.TrimSpace(x))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func ints(s string) ([]int, error) { return list(s, strconv.Atoi) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sessionTime is the timeout of all sessions under load.
const sessionTime = 30 * time.Second

// open opens a session that pings.
func open(addr string) (*zkwire.Client, error) {
	c, err := zkwire.DialClient(addr, sessionTime, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c.KeepAlive()
	return c, nil
}

// ensure makes a node if it is not there.
func ensure(c *zkwire.Client, path string, data []byte) error {
	r, err := c.Do(zkwire.OpCreate, zkwire.Create(path, data, 0))
	if err == nil && r.Err != 0 && r.Err != zkwire.ErrNodeExists {
		err = fmt.Errorf("create %s: error %d", path, r.Err)
	}
	return err
}

// residentBytes is a process's memory, 0 where /proc does not tell.
func residentBytes(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}

// wipe deletes everything; it authenticates as super:test first, for a server that knows that one.
func wipe(o *options) error {
	c, err := open(o.addr)
	if err != nil {
		return err
	}
	defer c.End()
	auth := make(chan zkwire.Reply, 1)
	c.Queue(zkwire.OpAuth, zkwire.Auth("digest", []byte("super:test")), func(r zkwire.Reply) { auth <- r })
	c.Flush()
	select {
	case <-auth:
	case <-c.Dead:
		return c.Err
	}
	n, err := removeBelow(c, "/")
	fmt.Println("deleted", n)
	return err
}

func removeBelow(c *zkwire.Client, path string) (deleted int, err error) {
	r, err := c.Do(zkwire.OpGetChildren, zkwire.PathWatch(path, false))
	if err != nil {
		return 0, err
	}
	d := zkwire.Dec{B: r.Body}
	var failed error
	for _, name := range d.Strs() {
		child := strings.TrimSuffix(path, "/") + "/" + name
		if child == "/zookeeper" {
			continue
		}
		n, err := removeBelow(c, child)
		deleted += n
		failed = errors.Join(failed, err)
		if r, err = c.Do(zkwire.OpDelete, zkwire.PathInt(child, -1)); err != nil {
			return deleted, err
		}
		if r.Err == 0 {
			deleted++
		}
	}
	return deleted, failed
}
