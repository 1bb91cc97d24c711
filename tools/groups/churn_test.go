//go:build unix

package groups

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const churnPartitions = 8

// course is what the workers of one group say together.
type course struct {
	t  *testing.T
	mu sync.Mutex
	// owners is who owned a partition in a generation.
	owners map[string]string
	done   [churnPartitions]map[int64]bool
	most   int
}

func (c *course) read(name string, line string) {
	words := strings.Fields(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(words) >= 2 && words[0] == "O":
		for _, p := range words[2:] {
			key := "generation " + words[1] + " partition " + p
			if o := c.owners[key]; o != "" && o != name {
				c.t.Errorf("%s is of %s and of %s", key, o, name)
			}
			c.owners[key] = name
		}
		if n, _ := strconv.Atoi(words[1]); n > c.most {
			c.most = n
		}
	case len(words) == 4 && words[0] == "R":
		var p, from, to int64
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &p, &from, &to); err != nil {
			c.t.Errorf("%s said %q", name, line)
			return
		}
		for o := from; o <= to; o++ {
			c.done[p][o] = true
		}
	}
}

func (c *course) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, d := range c.done {
		n += len(d)
	}
	return n
}

// process is one worker.
type process struct {
	name     string
	instance string
	cmd      *exec.Cmd
	ended    chan struct{}
	stopped  bool
}

func (c *course) launch(addr, group, balancer, instance string, n int) *process {
	c.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{name: fmt.Sprint("w", n), instance: instance, ended: make(chan struct{})}
	if instance != "-" {
		p.name = instance // it takes over what it had before, in the same generation
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), workerEnv+"="+strings.Join([]string{addr, group, balancer, instance}, " "))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.read(p.name, lines.Text())
		}
		_ = p.cmd.Wait()
	}()
	c.t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.stopped = s == syscall.SIGSTOP
	_ = p.cmd.Process.Signal(s) // it may have ended
	if s == syscall.SIGKILL {
		<-p.ended
	}
}

// TestChurn: members come, leave, are killed, and are stopped for a while, eager and cooperative, dynamic
// and static. In every generation a partition has one owner, every record is processed, and the group comes to
// rest.
func TestChurn(t *testing.T) {
	for _, balancer := range []string{"range", "cooperative"} {
		t.Run(balancer, func(t *testing.T) { churn(t, balancer) })
	}
}

func churn(t *testing.T, balancer string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	b := start(t, churnPartitions, map[string]string{"group.min.session.timeout.ms": "1000"})
	c := &course{t: t, owners: map[string]string{}}
	for i := range c.done {
		c.done[i] = map[int64]bool{}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	sent := 0
	var live []*process
	made := 0
	add := func() {
		instance := "-"
		if made%3 == 0 {
			instance = fmt.Sprint("i", made%2)
			for _, p := range live {
				if p.instance == instance {
					instance = "-"
				}
			}
		}
		made++
		live = append(live, c.launch(b.Addr(), "churn", balancer, instance, made))
	}
	for range 3 {
		add()
	}
	for range 30 {
		time.Sleep(time.Duration(100+rnd.IntN(300)) * time.Millisecond)
		for range 10 {
			cl.Produce(context.Background(), kgo.StringRecord("x"), nil)
			sent++
		}
		p := live[rnd.IntN(len(live))]
		switch n := rnd.IntN(10); {
		case n < 3 && len(live) < 5:
			add()
		case n < 5 && len(live) > 1:
			sig := syscall.SIGTERM
			if rnd.IntN(2) == 0 || p.stopped {
				sig = syscall.SIGKILL
			}
			p.signal(sig)
			for i := range live {
				if live[i] == p {
					live = append(live[:i], live[i+1:]...)
					break
				}
			}
		case n < 8 && !p.stopped:
			p.signal(syscall.SIGSTOP)
		default:
			p.signal(syscall.SIGCONT)
		}
	}
	for _, p := range live {
		p.signal(syscall.SIGCONT)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(cl)
	state, members := "", 0
	for ctx.Err() == nil {
		d, err := adm.DescribeGroups(ctx, "churn")
		if err == nil {
			state, members = d["churn"].State, len(d["churn"].Members)
		}
		if state == "Stable" && members == len(live) && c.count() == sent {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if state != "Stable" || members != len(live) || c.count() != sent {
		t.Errorf("in the end: %s, %d members where %d live; %d of %d records processed", state, members, len(live), c.count(), sent)
	}
	for _, p := range live {
		p.signal(syscall.SIGKILL)
	}
	t.Logf("%d workers, %d records, up to generation %d", made, sent, c.most)
}
