package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"platter/coord/controller"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/handles"
	"platter/io/memdisk"
	"platter/replication/core"
	"platter/replication/follow"
	"platter/replication/replica"
)

// broker is one broker process over its disk.
type broker struct {
	w  *World
	id int
	fs *memdisk.FS
	up bool
	// shift and pace are how wrong its clock is: ahead by so many milliseconds, and counting so many in a hundred.
	shift, pace int64

	life     int   // which process it is
	member   bool  // it has registered, as far as it knows
	epoch    int64 // of the last registration that it has heard of; 0: none
	heard    int32 // the newest controller epoch that spoke
	replicas map[store.TP]*held
	marks    map[store.TP]int64 // checkpointed high watermarks
	lost     int64              // the registration in which it lost its memory; 0: never
}

// held is one replica, and whether somebody fetches for it.
type held struct {
	*replica.Replica
	log      *commitlog.Log
	fetching int32 // leader epoch in which it is fetched for; -1: not
}

func newBroker(w *World, id int) *broker {
	b := &broker{w: w, id: id, fs: memdisk.New(memdisk.Options{Clock: simClock{w}}), marks: map[store.TP]int64{},
		shift: w.rng.Int64N(1_000_000), pace: 80 + w.rng.Int64N(45)}
	if err := errors.Join(b.fs.MkdirAll("/d"), b.fs.SyncDir("/")); err != nil {
		panic(err)
	}
	return b
}

// nowMs is the broker's time.
func (b *broker) nowMs() int64 { return b.shift + b.w.now*b.pace/100 }

// start starts the process: it registers anew.
func (b *broker) start() {
	b.up, b.member, b.heard, b.epoch = true, false, 0, 0
	b.life++
	b.replicas = map[store.TP]*held{}
	b.w.logf("broker %d starts", b.id)
	b.w.register(b)
	b.tick(b.life)
}

// kill ends the process; with power cut the disk has lost some of what was not synced, too.
func (b *broker) kill(powerCut bool) {
	b.w.logf("broker %d dies (power cut: %v)", b.id, powerCut)
	for tp, h := range b.replicas {
		if b.w.chance(2) {
			s, _ := h.State(-1)
			b.marks[tp] = s.HighWatermark
		}
	}
	b.up = false
	b.replicas = nil
	if powerCut {
		if !b.w.synced {
			b.lost = b.w.zk.registered[b.id]
		}
		b.fs.Crash(b.w.rng.Uint64())
	} else {
		b.fs.Kill()
	}
	epoch := b.w.zk.registered[b.id]
	b.w.after(sessionMs, func() { b.w.expire(b, epoch) })
}

// alive says whether it is still the same process.
func (b *broker) alive(life int) bool { return b.up && b.life == life }

// tick looks for followers that lag.
func (b *broker) tick(life int) {
	b.w.after(lagMaxMs/2, func() {
		if b.alive(life) {
			for _, tp := range b.w.partitions() {
				if h := b.replicas[tp]; h != nil {
					h.Tick(b.nowMs())
				}
			}
			b.tick(life)
		}
	})
}

// ensure opens a replica.
func (b *broker) ensure(tp store.TP) (*held, error) {
	if h := b.replicas[tp]; h != nil {
		return h, nil
	}
	c := commitlog.DefaultConfig()
	c.SegmentBytes, c.RetentionMs = 2000, -1
	if b.w.synced {
		c.FlushMessages = 1
	}
	log, err := commitlog.Open(context.Background(), commitlog.Options{
		FS: b.fs, Handles: handles.New(b.fs, 32), Clock: simClock{b.w}, Dir: fmt.Sprintf("/d/%s-%d", tp.Topic, tp.Partition),
		Topic: tp.Topic, Partition: tp.Partition, Config: c,
		Background: func(f func()) { b.w.after(1, f) },
		OnIOError:  func(error) {},
	})
	if err != nil {
		return nil, err
	}
	if err := b.fs.SyncDir("/d"); err != nil {
		return nil, err
	}
	h := &held{log: log, fetching: -1}
	h.Replica = replica.New(replica.Config{
		Self: int32(b.id), TopicID: b.w.topicID, Log: log, HighWatermark: b.marks[tp], MinISR: 2, LagTimeMaxMs: lagMaxMs,
		Wanted: func(*replica.Replica) { b.wish(b.life, tp) },
	})
	b.replicas[tp] = h
	return h, nil
}

// told is the controller's word; as coord/node's local, without strays. False: it is for another registration, and to be
// said again.
func (b *broker) told(l *controller.LeaderAndISR) bool {
	if l.ControllerEpoch < b.heard {
		return true
	}
	if b.w.plant == DropEarly && l.BrokerEpoch > b.epoch {
		return true
	}
	if b.epoch == 0 || l.BrokerEpoch < b.epoch {
		return false
	}
	b.heard = l.ControllerEpoch
	for i := range l.Partitions {
		p := &l.Partitions[i]
		h, err := b.ensure(p.TP)
		if err != nil {
			b.w.fail("broker %d cannot open %s: %v", b.id, p.TP, err)
			return true
		}
		before, _ := h.State(-1)
		err = h.Assign(core.Assignment{
			ControllerEpoch: p.State.ControllerEpoch, Leader: p.State.Leader, LeaderEpoch: p.State.LeaderEpoch,
			PartitionEpoch: p.PartitionEpoch, ISR: p.State.ISR, Replicas: p.Replicas,
		}, b.nowMs())
		if err != nil {
			continue // an older word
		}
		if s, _ := h.State(-1); s.IsLeader && s.LeaderEpoch > before.LeaderEpoch {
			b.w.logf("broker %d leads %s in epoch %d", b.id, p.TP, s.LeaderEpoch)
			b.w.leads(b, p.TP, h)
		}
		if at, follows := h.Position(); follows && h.fetching < at.LeaderEpoch {
			h.fetching = at.LeaderEpoch
			b.fetch(b.life, p.TP, h, at.LeaderEpoch)
		}
	}
	return true
}

// fetch is a follower's loop in one leader epoch: ask, take, ask again.
func (b *broker) fetch(life int, tp store.TP, h *held, epoch int32) {
	at, follows := h.Position()
	if !b.alive(life) || !follows || at.LeaderEpoch != epoch || h.fetching != epoch {
		return
	}
	again := func() { b.fetch(life, tp, h, epoch) }
	leader, registration := b.w.brokers[at.Leader], b.epoch
	b.w.send(b.id, leader.id, func() {
		g, start := leader.fetched(tp, at, b.id, registration)
		b.w.send(leader.id, b.id, func() {
			if !b.alive(life) || h.fetching != at.LeaderEpoch {
				return
			}
			_, err := follow.Apply(h.Replica, at, &g, nil, func() (int64, error) { return start, nil })
			if g.Diverges {
				b.w.logf("broker %d cuts %s back from %d, epoch %d: leader %d has epoch %d up to %d; the end is %d now (%v)", b.id, tp,
					at.Offset, at.LastEpoch, at.Leader, g.Epoch, g.EndOffset, h.log.Ends().Written, err)
			}
			pause := int64(1)
			if err != nil {
				pause = 20
			} else if len(g.Records) == 0 {
				pause = 8 // the leader would have let it wait
			}
			b.w.after(pause, again)
		}, again)
	}, func() { b.w.after(20, again) })
}

// fetched is the leader's side of a fetch, as net/api has it.
func (b *broker) fetched(tp store.TP, at replica.Position, from int, fromEpoch int64) (g follow.Given, start int64) {
	h := b.replicas[tp]
	if h == nil {
		g.Err = replica.ErrNotLeader
		return g, 0
	}
	st, err := h.State(at.LeaderEpoch)
	if err == nil && !st.IsLeader {
		err = replica.ErrNotLeader
	}
	if err != nil {
		g.Err = err
		return g, 0
	}
	if b.w.plant == KeepTail && at.Offset > st.LogEnd { // the follower waits until the leader is as far
		return g, st.LogStart
	}
	if epoch, end, known := h.Diverges(at.LastEpoch, at.Offset); known && b.w.plant != KeepTail {
		if epoch < 0 {
			g.Err = follow.ErrOutOfRange
			return g, st.LogStart
		}
		g.Diverges, g.Epoch, g.EndOffset = true, epoch, end
		return g, st.LogStart
	}
	read, _, err := h.Read(at.Offset, 1500, replica.LogEnd, at.LeaderEpoch, true)
	if errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		err = follow.ErrOutOfRange
	}
	if err != nil {
		g.Err = err
		return g, st.LogStart
	}
	g.Records = bytesOf(read)
	err = h.FollowerFetched(core.Fetch{
		Broker: int32(from), BrokerEpoch: fromEpoch, LeaderEpoch: at.LeaderEpoch, Offset: at.Offset, Durable: at.Offset,
		LogStart: at.LogStart, NowMs: b.nowMs(),
	})
	if err != nil {
		return follow.Given{Err: err}, st.LogStart
	}
	st, _ = h.State(-1)
	g.HighWatermark, g.LogStart = st.HighWatermark, st.LogStart
	return g, st.LogStart
}

func bytesOf(read commitlog.Read) []byte {
	defer read.Release()
	var out []byte
	for _, r := range read.Ranges {
		p := make([]byte, r.Len)
		if n, err := r.File.ReadAt(p, r.Pos); int64(n) < r.Len && err != nil && err != io.EOF {
			return nil
		}
		out = append(out, p...)
	}
	return out
}

// records is a replica's log from its start up to an offset, by offset.
func (h *held) records(upTo int64) (map[int64]string, error) {
	out := map[int64]string{}
	e := h.log.Ends()
	for at := e.Start; at < min(upTo, e.Written); {
		read, err := h.log.Read(at, math.MaxInt32, min(upTo, e.Written), true)
		if err != nil {
			return nil, err
		}
		next := read.NextOffset
		bs, err := batch.Split(nil, bytesOf(read))
		if err != nil {
			return nil, err
		}
		for _, b := range bs {
			out[b.BaseOffset()] = fmt.Sprintf("%d/%d", b.ProducerID(), b.BaseSequence())
		}
		if next <= at {
			return nil, fmt.Errorf("a read at %d does not go on", at)
		}
		at = next
	}
	return out, nil
}
