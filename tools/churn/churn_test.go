//go:build unix

package churn

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"platter/tools/proc"
)

const (
	partitionCount = 12
	processesMax   = 7
	inProcessMax   = 4
	staticCount    = 2
	session        = time.Second
)

// TestChurn does to two groups, one of each way of balancing, whatever can happen to members, and checks what was
// promised. Every twenty steps it waits until the group has come to rest.
func TestChurn(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	proc.CreateTopic(t, b.Addr(), "churn", partitionCount)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	wait := produce(ctx, t, b.Addr(), "churn", partitionCount)
	t.Run("groups", func(t *testing.T) {
		for _, group := range []string{"eager", "cooperative"} {
			t.Run(group, func(t *testing.T) {
				t.Parallel()
				g := newChurned(t, b.Addr(), group)
				for i := range *steps {
					g.step()
					if i%20 == 19 {
						g.rest()
					}
				}
				g.rest()
				g.finish()
			})
		}
	})
	stop()
	wait()
}

// churned is one group, and what is done to it.
type churned struct {
	t       *testing.T
	cfg     Config
	rnd     *rand.Rand
	ledger  ledger
	procs   []*process
	insides []*inside
	statics [staticCount]*process
	done    map[string]int
}

// process is a member in a process of its own.
type process struct {
	*proc.Child
	paused bool
	ended  chan struct{} // closed when the process has ended
}

func newChurned(t *testing.T, addr, group string) *churned {
	g := &churned{t: t, rnd: proc.Random(t, *seed), done: map[string]int{}}
	g.cfg = Config{
		Addr: addr, Group: group, Topic: "churn", Cooperative: group == "cooperative",
		Session: session, Rebalance: 2 * session, Work: 20 * time.Millisecond,
	}
	for i := range g.statics {
		g.statics[i] = g.start(g.instance(i))
	}
	return g
}

func (g *churned) instance(i int) string { return fmt.Sprintf("static-%d", i) }

func (g *churned) start(instance string) *process {
	cfg := g.cfg
	cfg.Instance = instance
	p := &process{Child: proc.StartChild(g.t, "member", cfg), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for line := range p.Lines {
			var e Event
			// The last line of one that was killed may be torn.
			if json.Unmarshal([]byte(line), &e) == nil {
				g.ledger.add(e)
			}
		}
	}()
	return p
}

// step does one thing to the group.
func (g *churned) step() {
	actions := []struct {
		name string
		do   func() bool
	}{
		{"join", g.join}, {"leave", g.leave}, {"die", g.die}, {"pause", g.pause}, {"pause in mid-join", g.pauseJoining},
		{"resume", g.resume}, {"static restart", g.restartStatic}, {"static twice", g.doubleStatic},
		{"join inside", g.joinInside}, {"leave inside", g.leaveInside},
	}
	for {
		a := actions[g.rnd.IntN(len(actions))]
		if a.do() {
			g.done[a.name]++
			break
		}
	}
	time.Sleep(time.Duration(g.rnd.IntN(200)) * time.Millisecond)
}

func (g *churned) join() bool {
	if len(g.procs) == processesMax {
		return false
	}
	g.procs = append(g.procs, g.start(""))
	return true
}

// pick takes one of the processes, or nil.
func (g *churned) pick(paused bool) *process {
	var fit []*process
	for _, p := range append(g.procs[:len(g.procs):len(g.procs)], g.statics[:]...) {
		if p.paused == paused {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[g.rnd.IntN(len(fit))]
}

// take removes one of the dynamic processes; nil: there is none.
func (g *churned) take() *process {
	if len(g.procs) == 0 {
		return nil
	}
	i := g.rnd.IntN(len(g.procs))
	p := g.procs[i]
	g.procs = append(g.procs[:i:i], g.procs[i+1:]...)
	return p
}

func (g *churned) leave() bool {
	p := g.take()
	if p == nil {
		return false
	}
	p.Signal(syscall.SIGCONT)
	p.Tell("leave")
	return true
}

func (g *churned) die() bool {
	p := g.take()
	if p == nil {
		return false
	}
	p.Signal(syscall.SIGKILL)
	return true
}

func (g *churned) pause() bool {
	p := g.pick(false)
	if p == nil {
		return false
	}
	p.Signal(syscall.SIGSTOP)
	p.paused = true
	// One in three stays away for longer than its session, and is a zombie when it comes back.
	if g.rnd.IntN(3) == 0 {
		time.Sleep(session + session/4)
	}
	return true
}

// pauseJoining freezes a member that has just been started, and with it, as often as not, the rebalance.
func (g *churned) pauseJoining() bool {
	if !g.join() {
		return false
	}
	p := g.procs[len(g.procs)-1]
	time.Sleep(time.Duration(20+g.rnd.IntN(150)) * time.Millisecond)
	p.Signal(syscall.SIGSTOP)
	p.paused = true
	return true
}

func (g *churned) resume() bool {
	p := g.pick(true)
	if p == nil {
		return false
	}
	p.Signal(syscall.SIGCONT)
	p.paused = false
	return true
}

// restartStatic kills a static member and starts it again at once.
func (g *churned) restartStatic() bool {
	i := g.rnd.IntN(staticCount)
	g.statics[i].Signal(syscall.SIGKILL)
	<-g.statics[i].ended
	g.statics[i] = g.start(g.instance(i))
	return true
}

// doubleStatic starts another member of the same instance id: the one that was there is fenced, and ends.
func (g *churned) doubleStatic() bool {
	i := g.rnd.IntN(staticCount)
	old := g.statics[i]
	old.Signal(syscall.SIGCONT)
	g.statics[i] = g.start(g.instance(i))
	select {
	case <-old.ended:
	case <-g.statics[i].ended:
		// Both joined at once, and the second was fenced by the first, which goes on.
		g.statics[i] = old
	case <-time.After(90 * time.Second):
		g.t.Fatal("two members of one instance id, and neither was fenced")
	}
	return true
}

func (g *churned) joinInside() bool {
	if len(g.insides) == inProcessMax {
		return false
	}
	g.insides = append(g.insides, startInside(g.t, g.cfg, &g.ledger))
	return true
}

func (g *churned) leaveInside() bool {
	if len(g.insides) == 0 {
		return false
	}
	g.insides[0].leave()
	g.insides = g.insides[1:]
	return true
}

// rest wakes everybody up and waits until the group has come to rest with those who are alive.
func (g *churned) rest() {
	g.t.Helper()
	for g.resume() {
	}
	members := len(g.procs) + len(g.insides) + staticCount
	cl := newClient(g.t, g.cfg.Addr)
	until(g.t, fmt.Sprintf("a stable group of %d", members), func() bool { return settled(cl, g.cfg.Group, members) })
}

// finish waits until all that is there by now was processed, and checks.
func (g *churned) finish() {
	cl := newClient(g.t, g.cfg.Addr)
	ends := logEnds(g.t, cl, g.cfg.Topic)
	until(g.t, "every record to be processed", func() bool { return g.ledger.covers(ends) })
	events := g.ledger.all()
	g.t.Logf("%v; %s; records %v", g.done, tally(events), ends)
	report(g.t, Check(events, ends))
}
