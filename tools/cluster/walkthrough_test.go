package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"platter/coord/realzk"
	"platter/tools/proc"
)

// TestWalkthrough is the classic way through a replicated topic, once over each kind of coordinator; nothing but
// its address differs.
func TestWalkthrough(t *testing.T) {
	t.Run("Platter's coordinator", func(t *testing.T) { walkthrough(t, StartCoordinator(t, proc.Binary(t)).Addr()) })
	t.Run("Apache ZooKeeper", func(t *testing.T) {
		zk, err := realzk.Start(realzk.Options{TickMs: 500})
		if err != nil {
			t.Skipf("Apache ZooKeeper: %v", err)
		}
		t.Cleanup(func() { zk.Stop() })
		walkthrough(t, zk.Addr+"/platter")
	})
}

func walkthrough(t *testing.T, zookeeper string) {
	bin := proc.Binary(t)

	// Three brokers, from three files that differ in broker.id, port and log.dirs.
	c := New(t, bin, 3, zookeeper, nil)
	c.Start()
	adm := c.Admin()

	// A topic with one partition and three replicas. The list shows leader, replicas and isr.
	platter(t, bin, "topic", "create", "walk", "--partitions", "1", "--replicas", "3", "-b", c.Bootstrap())
	c.AwaitWhole(adm, "walk")
	first := classic(t, bin, c)
	if first.leader != first.replicas[0] || len(first.replicas) != 3 || !slices.Equal(sorted(first.isr), sorted(first.replicas)) {
		t.Fatalf("a new topic: %+v", first)
	}

	// A console producer and a console consumer exchange lines.
	producer := startProducer(t, bin, c)
	consumer := startConsumer(t, bin, c)
	said := 0
	say := func(n int) {
		for range n {
			said++
			producer.say(fmt.Sprintf("line %d", said))
		}
	}
	say(10)
	consumer.await(said)

	// kill -9 a follower: isr shrinks to two, and traffic goes on.
	follower := c.Brokers[other(first.replicas, first.leader)]
	follower.Kill()
	say(10)
	consumer.await(said)
	awaitLine(t, bin, c, "isr is two", func(l line) bool { return len(l.isr) == 2 && l.leader == first.leader })

	// kill -9 the leader: another one leads. Lines that are sent before, meanwhile and after arrive.
	follower.Start()
	awaitLine(t, bin, c, "isr is three again", func(l line) bool { return len(l.isr) == 3 })
	say(10)
	c.Brokers[first.leader].Kill()
	say(10)
	moved := awaitLine(t, bin, c, "another leads", func(l line) bool { return l.leader >= 0 && l.leader != first.leader })
	say(10)
	consumer.await(said)

	// Restart it: the isr is three, and the preferred leader can lead again.
	c.Brokers[first.leader].Start()
	awaitLine(t, bin, c, "isr is three at last", func(l line) bool { return len(l.isr) == 3 })
	preferred(t, c, "walk")
	awaitLine(t, bin, c, "the preferred leader leads", func(l line) bool { return l.leader == first.leader })
	say(10)
	consumer.await(said)
	producer.end()

	// Each line is there once, and in order.
	for i, got := range consumer.all() {
		if want := fmt.Sprintf("line %d", i+1); got != want {
			t.Fatalf("line %d is %q, not %q", i, got, want)
		}
	}
	t.Logf("broker %d led, then %d, then %d; %d lines", first.leader, moved.leader, first.leader, said)
}

// platter runs the command line.
func platter(t *testing.T, bin string, args ...string) string {
	t.Helper()
	out, err := exec.Command(bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("platter %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// line is the topic's line in the list.
type line struct {
	leader        int
	replicas, isr []int
}

func classic(t *testing.T, bin string, c *Cluster) line {
	t.Helper()
	var l line
	var replicas, isr string
	out, err := exec.Command(bin, "topic", "list", "--classic", "-b", c.Bootstrap()).CombinedOutput()
	if err != nil {
		return line{leader: -1}
	}
	text := strings.ReplaceAll(strings.TrimSpace(string(out)), "leader: none", "leader: -1")
	if _, err := fmt.Sscanf(text, "topic: walk\tpartition: 0\tleader: %d\treplicas: %s\tisr: %s", &l.leader, &replicas, &isr); err != nil {
		t.Fatalf("the list says %q: %v", text, err)
	}
	l.replicas, l.isr = ids(t, replicas), ids(t, isr)
	return l
}

func ids(t *testing.T, s string) []int {
	t.Helper()
	var out []int
	for _, f := range strings.Split(s, ",") {
		var n int
		if _, err := fmt.Sscan(f, &n); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		out = append(out, n)
	}
	return out
}

func sorted(n []int) []int {
	n = slices.Clone(n)
	slices.Sort(n)
	return n
}

// other is one of the replicas that is not the leader.
func other(replicas []int, leader int) int {
	return replicas[slices.IndexFunc(replicas, func(id int) bool { return id != leader })]
}

func awaitLine(t *testing.T, bin string, c *Cluster, what string, want func(line) bool) line {
	t.Helper()
	var l line
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(100 * time.Millisecond) {
		if l = classic(t, bin, c); want(l) {
			return l
		}
	}
	t.Fatalf("not in 90 s: %s; the list says %+v", what, l)
	return l
}

// preferred makes the preferred replica lead. It is asked for until it is done: the controller may just be another.
func preferred(t *testing.T, c *Cluster, topic string) {
	t.Helper()
	adm := c.Admin()
	var last error
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(200 * time.Millisecond) {
		got, err := adm.ElectLeaders(t.Context(), 0, nil)
		last = err
		for _, r := range got[topic] {
			if r.Err != nil {
				last = r.Err
			}
		}
		if last == nil {
			return
		}
	}
	t.Fatalf("the election of the preferred leader: %v", last)
}

// console is a console client.
type console struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu    sync.Mutex
	lines []string
}

func startConsole(t *testing.T, bin string, args ...string) *console {
	t.Helper()
	k := &console{t: t, cmd: exec.Command(bin, args...)}
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	k.cmd.Stderr = errs
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			k.mu.Lock()
			k.lines = append(k.lines, sc.Text())
			k.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		<-read
		_ = k.cmd.Wait()
		if text, _ := os.ReadFile(errs.Name()); t.Failed() {
			t.Logf("%v: %s", args, text)
		}
		errs.Close()
	})
	return k
}

func startProducer(t *testing.T, bin string, c *Cluster) *console {
	return startConsole(t, bin, "produce", "-t", "walk", "-b", c.Bootstrap())
}

func startConsumer(t *testing.T, bin string, c *Cluster) *console {
	return startConsole(t, bin, "consume", "-t", "walk", "-o", "beginning", "-b", c.Bootstrap())
}

func (k *console) say(text string) {
	if _, err := io.WriteString(k.in, text+"\n"); err != nil {
		k.t.Fatalf("the console is gone: %v", err)
	}
}

// end closes the producer's input, upon which it ends, having sent all.
func (k *console) end() {
	_ = k.in.Close()
}

func (k *console) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lines)
}

// await waits until the consumer has printed n lines.
func (k *console) await(n int) {
	k.t.Helper()
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(20 * time.Millisecond) {
		if len(k.all()) >= n {
			return
		}
	}
	k.t.Fatalf("not in 90 s: %d lines; there are %d", n, len(k.all()))
}
