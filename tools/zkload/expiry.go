package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"platter/tools/zkwire"
)

// holder is a process of its own that has one ephemeral node and pings, until expiry kills it.
func holder(o *options) error {
	c, err := zkwire.DialClient(o.addr, o.timeout, 10*time.Second)
	if err != nil {
		return err
	}
	c.KeepAlive()
	r, err := c.Do(zkwire.OpCreate, zkwire.Create(o.path, []byte("x"), 1))
	if err != nil || r.Err != 0 {
		return fmt.Errorf("create %s: error %d, %w", o.path, r.Err, err)
	}
	fmt.Println("ready", c.TimeoutMs)
	<-c.Dead
	return nil
}

// graves is where the deaths of ephemeral nodes are told.
type graves struct {
	mu    sync.Mutex
	waits map[string]chan time.Time
}

func (g *graves) wait(path string) chan time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	ch := make(chan time.Time, 1)
	g.waits[path] = ch
	return ch
}

func (g *graves) tell(e zkwire.Event) {
	const deleted = 2
	g.mu.Lock()
	defer g.mu.Unlock()
	if ch := g.waits[e.Path]; ch != nil && e.Type == deleted {
		delete(g.waits, e.Path)
		ch <- e.At
	}
}

// life runs one holder, kills it, and returns the timeout that it was granted and how long its node outlived it.
func life(ctl *zkwire.Client, g *graves, addr, path string, asked, wait time.Duration) (granted, outlived time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	gone := g.wait(path)
	cmd := exec.Command(self, "holder", "-addr", addr, "-path", path, "-timeout", asked.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	var grantedMs int
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Sscanf(line, "ready %d", &grantedMs)
	r, err := ctl.Do(zkwire.OpExists, zkwire.PathWatch(path, true))
	if err == nil && r.Err != 0 {
		err = fmt.Errorf("exists %s: error %d", path, r.Err)
	}
	if err == nil {
		time.Sleep(wait)
	}
	killed := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return 0, 0, err
	}
	select {
	case at := <-gone:
		return time.Duration(grantedMs) * time.Millisecond, at.Sub(killed), nil
	case <-time.After(3*asked + time.Minute):
		return 0, 0, fmt.Errorf("%s has outlived its owner for good", path)
	}
}

func expiry(o *options) error {
	timeouts, err := list(o.timeouts, time.ParseDuration)
	if err != nil {
		return err
	}
	ctl, err := open(o.addr)
	if err != nil {
		return err
	}
	defer ctl.End()
	g := &graves{waits: map[string]chan time.Time{}}
	ctl.OnEvent = g.tell
	root := fmt.Sprintf("/zkexpiry-%d", time.Now().UnixMilli())
	if err := ensure(ctl, root, nil); err != nil {
		return err
	}
	took := make([][]time.Duration, len(timeouts))
	granted := make([]time.Duration, len(timeouts))
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for i, asked := range timeouts {
		for k := range o.trials {
			all.Go(func() {
				// The deaths are spread over a ping's interval and a tick, so that their phase is any.
				wait := asked/3 + time.Duration(k)*(asked/3+2*time.Second)/time.Duration(o.trials)
				given, d, err := life(ctl, g, o.addr, fmt.Sprintf("%s/e-%d-%d", root, i, k), asked, wait)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
					return
				}
				granted[i], took[i] = given, append(took[i], d)
			})
		}
	}
	all.Wait()
	fmt.Printf("%-10s %-10s %6s %8s %8s %8s  (s from SIGKILL to the event)\n", "requested", "granted", "trials", "min", "median", "max")
	for i, asked := range timeouts {
		v := took[i]
		slices.Sort(v)
		if len(v) > 0 {
			fmt.Printf("%-10s %-10s %6d %8.2f %8.2f %8.2f\n", asked, granted[i], len(v), v[0].Seconds(), quantile(v, .5).Seconds(), v[len(v)-1].Seconds())
		}
	}
	_, _ = ctl.Do(zkwire.OpDelete, zkwire.PathInt(root, -1))
	return failed
}
