package cluster

import (
	"math"
	"testing"
)

// TestUpdateOfAnyNumbers: partitions are numbers that anybody may send; none of them takes memory, or the process down.
func TestUpdateOfAnyNumbers(t *testing.T) {
	none := func(string) map[string]string { return nil }
	img := NewImage("c").Apply(Update{Topics: []TopicUpdate{{Name: "t", ID: someID, Partitions: map[int32]Partition{0: {Leader: 1}}}}}, none)
	for name, parts := range map[string]map[int32]Partition{
		"negative": {-1: {Leader: 2}, math.MinInt32: {Leader: 2}},
		"huge":     {math.MaxInt32: {Leader: 2}},
		"both":     {math.MaxInt32: {Leader: 2}, -1: {Leader: 2}, 0: {Leader: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			next := img.Apply(Update{Topics: []TopicUpdate{{Name: "t", ID: someID, Partitions: parts}, {Name: "u", Partitions: parts}}}, none)
			if got := next.Topic("t"); got == nil || len(got.Partitions) != 1 || got.Partitions[0].Leader != 1 {
				t.Errorf("the topic that was known: %+v", got)
			}
			if u := next.Topic("u"); u != nil && len(u.Partitions) > 0 {
				t.Errorf("a new topic has %d partitions", len(u.Partitions))
			}
		})
	}
	next := img.Apply(Update{Topics: []TopicUpdate{{Name: "t", ID: someID, Partitions: map[int32]Partition{3: {Leader: 3}}}}}, none)
	if p := next.Topic("t").Partitions; len(p) != 4 || p[2].Leader != -1 || p[3].Leader != 3 {
		t.Errorf("a gap: %+v", p)
	}
}
