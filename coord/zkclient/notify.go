package zkclient

import "sync"

// notifier runs callbacks one after the other on its own goroutine, so that the connection's reader
// never waits for a caller's code. Its queue is bounded by the number of one-shot watches and of state
// changes, and for persistent watches by waitingMax.
type notifier struct {
	mu    sync.Mutex
	some  sync.Cond
	queue []func()
	ended bool
}

func newNotifier() *notifier {
	n := &notifier{}
	n.some.L = &n.mu
	go n.run()
	return n
}

func (n *notifier) add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.queue = append(n.queue, f)
		n.some.Signal()
	}
}

// addUpTo adds unless so many wait already.
func (n *notifier) addUpTo(waiting int, f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) >= waiting {
		return false
	}
	if !n.ended {
		n.queue = append(n.queue, f)
		n.some.Signal()
	}
	return true
}

// end lets what is queued run, and then ends the goroutine. It does not wait: a callback may call it.
func (n *notifier) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	n.some.Signal()
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		for len(n.queue) == 0 && !n.ended {
			n.some.Wait()
		}
		queue := n.queue
		n.queue = nil
		n.mu.Unlock()
		if queue == nil {
			return
		}
		for _, f := range queue {
			f()
		}
	}
}
