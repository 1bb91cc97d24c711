package cluster

import (
	"time"

	"platter/tools/proc"
)

// Roll restarts the brokers one after the other, each once all replicas of all topics are in sync, until end is
// closed: an upgrade as it is done.
func (c *Cluster) Roll(end <-chan struct{}, brokers []*proc.Broker) {
	adm := c.Admin()
	for {
		for _, b := range brokers {
			for !c.whole(adm) {
				if ended(end, 50*time.Millisecond) {
					return
				}
			}
			if ended(end, rollPause) {
				return
			}
			b.Stop()
			b.Launch()
			if err := b.WaitReady(60 * time.Second); err != nil {
				c.t.Errorf("a restarted broker did not become ready: %v", err)
				return
			}
		}
	}
}

// rollPause is how long a restarted broker is left in peace before the next one's turn.
const rollPause = 4 * time.Second

func ended(end <-chan struct{}, wait time.Duration) bool {
	select {
	case <-end:
		return true
	case <-time.After(wait):
		return false
	}
}
