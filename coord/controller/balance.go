package controller

import (
	"slices"
	"time"

	"platter/engine/store"
)

// Balance is auto.leader.rebalance.enable with leader.imbalance.check.interval.seconds and
// leader.imbalance.per.broker.percentage. Every 0: leaders stay where they are.
type Balance struct {
	Every   time.Duration
	Percent int
}

// watchBalance raises a flag now and then, as long as the driver lives.
func (c *Controller) watchBalance() {
	for c.cfg.Balance.Every > 0 {
		select {
		case <-c.life.Done():
			return
		case <-c.cfg.Clock.After(c.cfg.Balance.Every):
			c.raise(balanceNews)
		}
	}
}

// rebalance gives leadership back to the preferred replicas of brokers that miss too many.
func (t *term) rebalance() {
	tps := t.core.imbalanced(t.c.cfg.Balance.Percent)
	if len(tps) == 0 {
		return
	}
	t.c.cfg.Log.Info("giving leaderships back to the preferred replicas", "partitions", len(tps))
	t.electLeaders(false, tps)
}

// imbalanced are the partitions that brokers should lead and could, of those brokers that do not lead more than
// percent of what they should (KafkaController.checkAndTriggerAutoLeaderRebalance).
func (c *core) imbalanced(percent int) []store.TP {
	should := map[int32]int{}
	missed := map[int32][]store.TP{}
	for _, tp := range c.allPartitions() {
		p := c.partition(tp)
		if !p.exists {
			continue
		}
		preferred := p.replicas[0]
		should[preferred]++
		if p.state.Leader != preferred {
			missed[preferred] = append(missed[preferred], tp)
		}
	}
	var out []store.TP
	for _, b := range c.liveBrokers() {
		if len(missed[b.ID])*100 <= percent*should[b.ID] || c.isLeaving(b.ID) {
			continue
		}
		for _, tp := range missed[b.ID] {
			p := c.partition(tp)
			if slices.Contains(p.state.ISR, b.ID) && !slices.Contains(p.offline, b.ID) && c.standingFor(p)(b.ID) == fresh {
				out = append(out, tp)
			}
		}
	}
	return out
}
