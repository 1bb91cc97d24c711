package cluster

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"platter/tools/proc"
)

// Rolling restarts brokers one after the other, each once all replicas of all topics are in sync: an upgrade as
// it is done.
type Rolling struct {
	c        *Cluster
	brokers  []*proc.Broker
	end      chan struct{}
	once     sync.Once
	ended    chan struct{}
	restarts atomic.Int64
}

// Roll begins to restart the brokers, until End. It ends with the test by itself.
func (c *Cluster) Roll(brokers []*proc.Broker) *Rolling {
	r := &Rolling{c: c, brokers: brokers, end: make(chan struct{}), ended: make(chan struct{})}
	go r.run()
	c.t.Cleanup(r.End)
	return r
}

// End waits for the broker whose turn it is, and leaves all of them running.
func (r *Rolling) End() {
	r.once.Do(func() { close(r.end) })
	<-r.ended
}

// Rounds is how often each broker has been restarted.
func (r *Rolling) Rounds() float64 { return float64(r.restarts.Load()) / float64(len(r.brokers)) }

// Over says that no more brokers are restarted: End was called, or one of them failed to come back.
func (r *Rolling) Over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (r *Rolling) run() {
	defer close(r.ended)
	adm := r.c.Admin()
	for {
		for _, b := range r.brokers {
			for !r.c.whole(adm) {
				if r.pause(50 * time.Millisecond) {
					return
				}
			}
			if r.pause(rollPause) {
				return
			}
			if !r.restart(b) {
				return
			}
			r.restarts.Add(1)
		}
	}
}

func (r *Rolling) restart(b *proc.Broker) bool {
	b.Signal(syscall.SIGTERM)
	if err := b.Wait(60 * time.Second); err != nil {
		r.c.t.Errorf("a broker did not stop cleanly: %v\n%s", err, b.LogTail(40))
		return false
	}
	b.Launch()
	if err := b.WaitReady(60 * time.Second); err != nil {
		r.c.t.Errorf("a restarted broker did not become ready: %v", err)
		return false
	}
	return true
}

// rollPause is how long a restarted broker is left in peace before the next one's turn. Several clients need some
// seconds for a coordinator that has moved; and a group is complete again only when a member whose leave was lost, since it
// went to the former coordinator, has timed out (10 s by most clients' defaults), of which each new coordinator begins to count anew.
const rollPause = 15 * time.Second

// pause waits; true: it is over.
func (r *Rolling) pause(wait time.Duration) bool { return ended(r.end, wait) }

// ended waits for end, for a while.
func ended(end <-chan struct{}, wait time.Duration) bool {
	select {
	case <-end:
		return true
	case <-time.After(wait):
		return false
	}
}
