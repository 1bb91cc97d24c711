package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platter/io/gate"
	"platter/net/server"
)

// guardDisks bounds the threads that may be blocked on each disk, before anything is opened on one.
func (b *Broker) guardDisks() {
	c := b.o.Config
	b.profiles = readProfiles(c.List("log.dirs"))
	byPlaces := map[int][]string{}
	for _, p := range b.profiles {
		b.o.Log.Info("disk", "dir", p.Path, "device", p.What(), "reason", p.Reason)
		places := p.Defaults().BlockedCallsMax
		override(&places, c.Int("spindle.blocked.calls.max"))
		byPlaces[places] = append(byPlaces[places], p.Path)
	}
	for places, dirs := range byPlaces {
		gate.Process.AddDevices(places, dirs...)
	}
}

const (
	// stalledLook is how often the disks are looked at, stalledMin how long one answers nothing before
	// that is worth a line in the log.
	stalledLook = 500 * time.Millisecond
	stalledMin  = 20 * time.Second
)

// hangsAfter is how long a disk answers nothing before new logs go elsewhere.
const hangsAfter = 2 * time.Second

// diskHangs says whether the disk under a data directory answers nothing any more.
func diskHangs(dir string) bool { return gate.Process.For(dir).Stats().Stalled >= hangsAfter }

// backlogBytes is how much of the memory for requests those may hold that wait for one disk.
func (b *Broker) backlogBytes() int64 {
	n := b.o.Config.Int64("queued.max.request.bytes")
	if n <= 0 {
		n = server.QueuedRequestBytesDefault
	}
	return max(1, n/4)
}

// stopPatience is how long a disk answers nothing before a broker that stops goes on without it. What is on the others is
// closed cleanly; the directory on that one recovers at the next start.
const stopPatience = 10 * time.Second

var errDiskHangs = errors.New("a disk answers nothing, so it was not waited for")

// patiently waits for a step of stopping, unless a disk holds it up for good.
func patiently(step func() error) error {
	done := make(chan error, 1)
	go func() { done <- step() }()
	began := time.Now()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(stalledLook):
		}
		for _, s := range gate.Process.Stats() {
			if s.Stalled >= stopPatience && time.Since(began) >= stopPatience {
				return fmt.Errorf("%w: %s", errDiskHangs, s.Name)
			}
		}
	}
}

// startDiskWatch runs watchDisks until the broker stops.
func (b *Broker) startDiskWatch() {
	ctx, cancel := context.WithCancel(context.Background())
	go b.watchDisks(ctx)
	b.atStop("the watch on the disks", func(context.Context) error { cancel(); return nil })
}

// watchDisks says it aloud when a disk answers nothing any more, and when it does again.
func (b *Broker) watchDisks(ctx context.Context) {
	stalled := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stalledLook):
		}
		for _, s := range gate.Process.Stats() {
			switch is := s.Stalled >= stalledMin; {
			case is == stalled[s.Name]:
			case is:
				b.o.Log.Error("a disk answers nothing; what needs it waits, the rest goes on", "dir", s.Name,
					"since", s.Stalled.Round(time.Second).String(), "blocked", s.Inside, "waiting", s.Waiting)
				stalled[s.Name] = true
			default:
				b.o.Log.Info("a disk answers again", "dir", s.Name)
				stalled[s.Name] = false
			}
		}
	}
}
