package churn

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func assigned(member string, generation int32, partitions ...int32) Event {
	return Event{Kind: Assigned, Member: member, Generation: generation, Partitions: partitions}
}

func processed(from, to int64) Event { return Event{Kind: Processed, Member: "a", From: from, To: to} }

func committed(member string, generation int32, to int64) Event {
	return Event{Kind: Committed, Member: member, Generation: generation, To: to}
}

// TestForgedHistories: a checker that never failed has proved nothing.
func TestForgedHistories(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []Event
		end    int64
		want   []Broken
	}{
		{"in order", []Event{
			assigned("a", 1, 0), processed(0, 5), committed("a", 1, 5), assigned("b", 2, 0), processed(5, 9), committed("b", 2, 9),
		}, 9, nil},
		{"processed twice", []Event{assigned("a", 1, 0), processed(0, 5), processed(2, 9), committed("a", 1, 9)}, 9, nil},
		{"told its assignment twice", []Event{assigned("a", 1, 0), assigned("a", 1, 0)}, 0, nil},
		{"another owner in the next generation", []Event{assigned("a", 1, 0), assigned("b", 2, 0)}, 0, nil},
		{"two owners", []Event{assigned("a", 1, 0, 1), assigned("b", 1, 1, 2)}, 0, []Broken{TwoOwners}},
		{"a zombie's commit", []Event{assigned("a", 1, 0), assigned("b", 2, 0), committed("a", 2, 5)}, 0, []Broken{NotFenced}},
		{"a commit while the partition is given up", []Event{assigned("a", 1, 0), assigned("a", 2), assigned("b", 3, 0), committed("a", 2, 5)}, 0, nil},
		{"a commit after it was given up", []Event{assigned("a", 1, 0), assigned("b", 3, 0), assigned("b", 4), committed("a", 4, 5)}, 0, []Broken{NotFenced}},
		{"a commit of nobody's", []Event{committed("a", 7, 5)}, 0, []Broken{NotFenced}},
		{"a commit that goes back", []Event{assigned("a", 1, 0), committed("a", 1, 5), committed("a", 1, 4)}, 0, []Broken{WentBack}},
		{"the next owner began too early", []Event{
			assigned("b", 2, 0), committed("b", 2, 3), assigned("a", 1, 0), committed("a", 1, 5),
		}, 0, []Broken{WentBack}},
		{"a gap", []Event{processed(0, 5), processed(6, 9)}, 9, []Broken{Skipped}},
		{"the beginning", []Event{processed(1, 9)}, 9, []Broken{Skipped}},
		{"the end", []Event{processed(0, 8)}, 9, []Broken{Skipped}},
		{"nothing at all", nil, 1, []Broken{Skipped}},
	} {
		var got []Broken
		for _, v := range Check(c.events, map[int32]int64{0: c.end}) {
			got = append(got, v.Broken)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCoverage compares the spans with a plain list of records.
func TestCoverage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var c coverage
		plain := make([]bool, 40)
		for range 1 + rnd.IntN(12) {
			from := rnd.Int64N(30)
			to := from + rnd.Int64N(8)
			c.add(processed(from, to))
			for i := from; i < to; i++ {
				plain[i] = true
			}
		}
		if want := int64(slices.Index(plain, false)); c.next(0) != want {
			t.Fatalf("first record not processed: %d, want %d; %v", c.next(0), want, c.spans)
		}
	}
}
