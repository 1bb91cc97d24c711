package controller

import (
	"errors"
	"time"

	"platter/coord/cluster"
	"platter/replication/host"
	"platter/replication/replica"
)

// A broker is asked again for replicas that it could not serve: what was in the way (a full disk, one that did not answer,
// too many open files) passes, and only a directory that has failed does not come back before the broker does. On the
// wire both have one code. The pauses double.
const (
	askDelayMin = time.Second
	askDelayMax = 30 * time.Second
)

// answer is what a broker said of partitions that it was told of.
type answer struct {
	broker cluster.Broker
	told   []PartitionState
	errs   []error
}

// answered notes what a broker said, for the driver: refusals, and with asks whatever it is.
func (c *Controller) answered(a answer, asks bool) {
	for _, err := range a.errs {
		if asks || err != nil && !errors.Is(err, replica.ErrStaleEpoch) { // it knows better than we do
			c.mu.Lock()
			c.answers = append(c.answers, a)
			c.mu.Unlock()
			c.raise(answerNews)
			return
		}
	}
}

// readAnswers takes over which replicas brokers cannot serve, and which they can again; true: there is a change.
func (t *term) readAnswers() (news bool) {
	t.c.mu.Lock()
	answers := t.c.answers
	t.c.answers = nil
	t.c.mu.Unlock()
	for _, a := range answers {
		if t.core.brokers[a.broker.ID].Epoch == a.broker.Epoch && t.readAnswer(&a) {
			news = true
		}
	}
	t.planAsking()
	return news
}

func (t *term) readAnswer(a *answer) (news bool) {
	log := t.c.cfg.Log.With("broker", a.broker.ID)
	for i, err := range a.errs {
		tp := a.told[i].TP
		topic := t.core.topics[tp.Topic]
		switch {
		case topic == nil || topic.id != a.told[i].TopicID: // said of an earlier topic of the name
		case errors.Is(err, replica.ErrStaleEpoch):
		case err == nil:
			if t.core.replicaOnline(a.broker.ID, tp) {
				log.Info("a broker serves a partition again", "topic", tp.Topic, "partition", tp.Partition)
				news = true
			}
		case errors.Is(err, host.ErrHangs) && len(a.told[i].Replicas) == 1: // nobody else could; it has the word, and will
			log.Error("a broker's disk holds up a partition", "topic", tp.Topic, "partition", tp.Partition)
		case t.core.replicaOffline(a.broker.ID, tp):
			log.Error("a broker cannot serve a partition", "topic", tp.Topic, "partition", tp.Partition, "err", err)
			t.askDelay = askDelayMin
			news = true
		}
	}
	return news
}

// planAsking has brokers asked again, after a while, when there are replicas that they could not serve.
func (t *term) planAsking() {
	if t.asking || len(t.core.ailing) == 0 {
		return
	}
	t.asking = true
	t.c.cfg.Clock.AfterFunc(t.askDelay, func() { t.c.raise(askNews) })
	t.askDelay = min(2*t.askDelay, askDelayMax)
}

// ask tells brokers again what they could not serve.
func (t *term) ask() error {
	t.asking = false
	t.core.askAgain()
	err := t.settle()
	t.planAsking()
	return err
}
