package controller

import (
	"slices"

	"platter/coord/cluster"
)

// place assigns replicas: over the brokers sorted by id, partition i's replica j goes to broker
// (start+i+j) mod n, the first being the preferred leader. start rotates by topic, or every topic of
// one partition would sit on the first broker. When all brokers name a rack, they are dealt out rack by
// rack, and a partition's replicas pass over a rack that has one while another rack has none.
// replicas is at most len(brokers).
func place(brokers []cluster.Broker, start, partitions, replicas int) [][]int32 {
	ring := sortedByID(brokers)
	racks := rackCount(ring)
	if racks > 1 {
		ring = alternating(ring)
	}
	out := make([][]int32, partitions)
	for i := range out {
		out[i] = pick(ring, start+i, replicas, racks)
	}
	return out
}

// placeBehind is place where fewer brokers are live than there are to be replicas: each partition has all of them,
// the first of which leads, and behind them as many as it takes of those that are away but have replicas of other
// topics, so that they are expected back: a topic can be created while a broker is restarted. Kafka does so since it
// keeps broker registrations itself (StripedReplicaPlacer: fenced brokers come last). nil: even so there are too few.
func placeBehind(live []cluster.Broker, away []int32, start, partitions, replicas int) [][]int32 {
	if len(live) == 0 || replicas > len(live)+len(away) {
		return nil
	}
	out := place(live, start, partitions, min(replicas, len(live)))
	for i := range out {
		for j := range replicas - len(out[i]) {
			out[i] = append(out[i], away[(start+i+j)%len(away)])
		}
	}
	return out
}

// usable are the brokers that new partitions go to: those that shut down are as good as away.
func (c *core) usable() []cluster.Broker {
	return slices.DeleteFunc(c.liveBrokers(), func(b cluster.Broker) bool { return c.isLeaving(b.ID) })
}

// away are the brokers that shut down, or have replicas and are not live, sorted.
func (c *core) away() []int32 {
	var out []int32
	for id := range c.brokers {
		if c.isLeaving(id) {
			out = append(out, id)
		}
	}
	for _, t := range c.topics {
		for i := range t.parts {
			for _, id := range t.parts[i].replicas {
				if _, live := c.brokers[id]; !live && !slices.Contains(out, id) {
					out = append(out, id)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// pick takes n brokers from the ring, beginning at a position. racks 0 or 1: they do not matter.
func pick(ring []cluster.Broker, at, n, racks int) []int32 {
	ids := make([]int32, 0, n)
	var used []string
	for len(ids) < n {
		for j := range ring {
			b := &ring[(at+j)%len(ring)]
			if slices.Contains(ids, b.ID) || racks > 1 && len(used) < racks && slices.Contains(used, b.Rack) {
				continue
			}
			ids = append(ids, b.ID)
			if !slices.Contains(used, b.Rack) {
				used = append(used, b.Rack)
			}
			if len(ids) == n {
				break
			}
		}
	}
	return ids
}

// rackCount is 0 when any broker has none: then racks do not count.
func rackCount(brokers []cluster.Broker) int {
	seen := map[string]bool{}
	for _, b := range brokers {
		if b.Rack == "" {
			return 0
		}
		seen[b.Rack] = true
	}
	return len(seen)
}

// alternating deals brokers out: one of each rack, racks by name, then the next of each.
func alternating(sorted []cluster.Broker) []cluster.Broker {
	byRack := map[string][]cluster.Broker{}
	var racks []string
	for _, b := range sorted {
		if byRack[b.Rack] == nil {
			racks = append(racks, b.Rack)
		}
		byRack[b.Rack] = append(byRack[b.Rack], b)
	}
	slices.Sort(racks)
	out := make([]cluster.Broker, 0, len(sorted))
	for len(out) < len(sorted) {
		for _, r := range racks {
			if len(byRack[r]) > 0 {
				out = append(out, byRack[r][0])
				byRack[r] = byRack[r][1:]
			}
		}
	}
	return out
}

func sortedByID(brokers []cluster.Broker) []cluster.Broker {
	out := slices.Clone(brokers)
	slices.SortFunc(out, func(a, b cluster.Broker) int { return int(a.ID) - int(b.ID) })
	return out
}
