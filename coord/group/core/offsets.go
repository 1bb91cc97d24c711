package core

import (
	"encoding/binary"

	"platter/engine/store"
)

// Offset is one committed offset.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
	CommitMs    int64
	ExpireMs    int64 // -1: by offsets.retention.minutes (only clients before 2.1 say more)
}

// consumerType is the protocol type of consumers; others may keep in a group what they like.
const consumerType = "consumer"

// CheckCommit says whether a member may commit. A commit without member and generation is for a group
// whose consumers assign partitions themselves: such a group has no members.
func (g *Group) CheckCommit(now int64, id string, instance *string, generation int32) error {
	switch {
	case g.state == Dead:
		return ErrDead
	case generation < 0 && id == "" && instance == nil:
		if g.state != Empty {
			return ErrUnknownMember
		}
		return nil
	case generation < 0 && g.state == Empty:
		return nil
	}
	m, err := g.current(id, instance, generation)
	switch {
	case err != nil:
		return err
	case g.state == CompletingRebalance:
		return ErrRebalanceInProgress
	}
	g.alive(m, now)
	return nil
}

// Commit takes in an offset that was stored.
func (g *Group) Commit(tp store.TP, o Offset) {
	if g.offsets == nil {
		g.offsets = map[store.TP]Offset{}
	}
	g.Forget(tp)
	g.offsets[tp] = o
	g.bytes += sizeOf(tp, o)
}

// Forget takes in that an offset was deleted.
func (g *Group) Forget(tp store.TP) {
	if o, ok := g.offsets[tp]; ok {
		g.bytes -= sizeOf(tp, o)
		delete(g.offsets, tp)
	}
}

func sizeOf(tp store.TP, o Offset) int64 { return offsetBytes + int64(len(tp.Topic)+len(o.Metadata)) }

// Offset finds one.
func (g *Group) Offset(tp store.TP) (Offset, bool) {
	o, ok := g.offsets[tp]
	return o, ok
}

// Offsets is all committed offsets; not to be changed.
func (g *Group) Offsets() map[store.TP]Offset { return g.offsets }

// Expired is the offsets that nobody needs any more: a group's a while after its last member has left, or
// after their commit where there never was one (KIP-211). A group with members keeps all. Unlike in Kafka,
// what was committed after the last member had left (a reset, say) is kept for as long as any other.
func (g *Group) Expired(now, retentionMs int64) []store.TP {
	if g.state != Empty {
		return nil
	}
	var out []store.TP
	for tp, o := range g.offsets {
		since := o.CommitMs
		if g.protocolType != "" {
			since = max(since, g.since)
		}
		if o.ExpireMs >= 0 && now >= o.ExpireMs || o.ExpireMs < 0 && now-since >= retentionMs {
			out = append(out, tp)
		}
	}
	return out
}

// CheckDeleteOffset says whether a topic's offsets may be deleted: not while consumers are subscribed.
func (g *Group) CheckDeleteOffset(topic string) error {
	switch {
	case g.state == Dead:
		return ErrNoGroup
	case g.state == Empty:
		return nil
	case g.protocolType != consumerType:
		return ErrNonEmpty
	case g.topics == nil || g.topics[topic]:
		return ErrSubscribed
	}
	return nil
}

// subscribed is the topics that members are subscribed to; nil when that cannot be known.
func (g *Group) subscribed() map[string]bool {
	if g.protocolType != consumerType {
		return nil
	}
	out := map[string]bool{}
	for _, m := range g.order {
		if !readSubscription(m.metadata(g.protocol), out) {
			return nil
		}
	}
	return out
}

// readSubscription adds the topics of a consumer's subscription to out; false: it is none. What the
// leader makes of the rest is its own business (Kafka's ConsumerProtocolSubscription).
//
//	size  field
//	   2  version
//	   4  count of topics, then for each: 2 length, its bytes
//	   …  user data, owned partitions, by version
func readSubscription(p []byte, out map[string]bool) bool {
	if len(p) < 6 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(p[2:]))
	p = p[6:]
	if n < 0 || int(n) > len(p)/2 {
		return false
	}
	for range n {
		if len(p) < 2 {
			return false
		}
		size := int(int16(binary.BigEndian.Uint16(p)))
		if size < 0 || size > len(p)-2 {
			return false
		}
		out[string(p[2:2+size])] = true
		p = p[2+size:]
	}
	return true
}

// Forgettable says that nothing of the group is left once so many of its offsets are deleted.
func (g *Group) Forgettable(offsets int) bool {
	return g.state == Empty && len(g.pending) == 0 && len(g.offsets) == offsets
}
