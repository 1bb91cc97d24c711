// Package churn has the members of consumer groups come, go, die and freeze, and the broker die under them, and
// decides from what the members report whether the group kept its promises:
//
//   - two owners: in one generation, a partition was given to two members
//   - not fenced: a commit was accepted from a member that did not have the partition in that generation, nor,
//     where nobody had it (as happens while a cooperative member gives it up), was the last to have it
//   - went back: a commit was accepted that lies before one of an earlier generation, or before the member's
//     own last one
//   - skipped: a record was processed by nobody, though it was there
//
// The checker knows nothing of the broker; it goes by generations, never by clocks, since a member that was
// frozen believes for a while what is true no longer.
package churn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Kind of an event.
type Kind string

// Kinds of events.
const (
	Assigned  Kind = "assigned"  // SyncGroup has given Partitions to the member, none being a number too
	Processed Kind = "processed" // records From up to To, exclusive, of Partition
	Committed Kind = "committed" // To was acknowledged as the next offset of Partition
	Refused   Kind = "refused"   // a commit was not accepted; Cause says why
)

// Event is what one member reports. A member's events are in its order; members are in no order to each other.
type Event struct {
	Kind       Kind    `json:"kind"`
	Member     string  `json:"member"` // the instance id, where there is one, else the member id
	Generation int32   `json:"generation"`
	Partitions []int32 `json:"partitions,omitempty"`
	Partition  int32   `json:"partition,omitempty"`
	From       int64   `json:"from,omitempty"`
	To         int64   `json:"to,omitempty"`
	Cause      string  `json:"cause,omitempty"`
}

// Broken names a promise.
type Broken string

// Promises that can be broken.
const (
	TwoOwners Broken = "two owners"
	NotFenced Broken = "not fenced"
	WentBack  Broken = "went back"
	Skipped   Broken = "skipped"
)

// Violation is one broken promise.
type Violation struct {
	Broken Broken
	Detail string
}

func (v Violation) String() string { return string(v.Broken) + ": " + v.Detail }

type claim struct {
	generation int32
	partition  int32
}

// Check returns every broken promise. ends are the log end offsets of the partitions, which begin at 0.
func Check(events []Event, ends map[int32]int64) []Violation {
	owners, out := checkOwners(events)
	out = append(out, checkCommits(events, owners)...)
	return append(out, checkProcessed(events, ends)...)
}

func checkOwners(events []Event) (map[claim]string, []Violation) {
	var out []Violation
	owners := map[claim]string{}
	for _, e := range events {
		if e.Kind != Assigned {
			continue
		}
		for _, p := range e.Partitions {
			c := claim{e.Generation, p}
			if o, ok := owners[c]; ok && o != e.Member {
				out = append(out, Violation{TwoOwners, fmt.Sprintf("partition %d in generation %d: %s and %s", p, e.Generation, o, e.Member)})
			}
			owners[c] = e.Member
		}
	}
	return owners, out
}

func checkCommits(events []Event, owners map[claim]string) []Violation {
	var out []Violation
	byPartition := map[int32][]Event{}
	for _, e := range events {
		if e.Kind != Committed {
			continue
		}
		if o := ownerAt(owners, e.Generation, e.Partition); o != e.Member {
			out = append(out, Violation{NotFenced, fmt.Sprintf("partition %d in generation %d is of %q, and %s has committed %d", e.Partition, e.Generation, o, e.Member, e.To)})
		}
		byPartition[e.Partition] = append(byPartition[e.Partition], e)
	}
	for p, commits := range byPartition {
		// Within a generation one member commits, whose order is kept.
		slices.SortStableFunc(commits, func(a, b Event) int { return cmp.Compare(a.Generation, b.Generation) })
		for i := 1; i < len(commits); i++ {
			if was, is := commits[i-1], commits[i]; is.To < was.To {
				out = append(out, Violation{WentBack, fmt.Sprintf("partition %d from %d by %s in generation %d to %d by %s in generation %d",
					p, was.To, was.Member, was.Generation, is.To, is.Member, is.Generation)})
			}
		}
	}
	return out
}

// ownerAt is who had a partition in a generation, or last before it.
func ownerAt(owners map[claim]string, generation, partition int32) string {
	for g := generation; g > 0; g-- {
		if o, ok := owners[claim{g, partition}]; ok {
			return o
		}
	}
	return ""
}

func checkProcessed(events []Event, ends map[int32]int64) []Violation {
	var c coverage
	for _, e := range events {
		c.add(e)
	}
	var out []Violation
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		if next := c.next(p); next < ends[p] {
			out = append(out, Violation{Skipped, fmt.Sprintf("partition %d: record %d of %d was processed by nobody", p, next, ends[p])})
		}
	}
	return out
}

// span is records From up to To, exclusive.
type span struct{ from, to int64 }

// coverage is which records were processed.
type coverage struct {
	spans map[int32][]span // sorted, apart from each other
}

func (c *coverage) add(e Event) {
	if e.Kind != Processed || e.From >= e.To {
		return
	}
	if c.spans == nil {
		c.spans = map[int32][]span{}
	}
	have := c.spans[e.Partition]
	lo := 0
	for lo < len(have) && have[lo].to < e.From {
		lo++
	}
	merged, hi := span{e.From, e.To}, lo
	for hi < len(have) && have[hi].from <= merged.to {
		merged = span{min(merged.from, have[hi].from), max(merged.to, have[hi].to)}
		hi++
	}
	c.spans[e.Partition] = slices.Replace(have, lo, hi, merged)
}

// next is the first record that was not processed.
func (c *coverage) next(partition int32) int64 {
	if have := c.spans[partition]; len(have) > 0 && have[0].from == 0 {
		return have[0].to
	}
	return 0
}
