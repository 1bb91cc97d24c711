package group

import (
	"fmt"
	"sync/atomic"
	"testing"

	"platter/coord/group/core"
	"platter/engine/store"
	"platter/io/clock"
)

// BenchmarkCommit is one offset after the other, from many groups at once.
func BenchmarkCommit(b *testing.B) {
	br := newBroker(b, clock.Real{}, nil)
	br.find("g")
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		group := fmt.Sprint("g", n.Add(1))
		for i := int64(0); pb.Next(); i++ {
			if err := br.commit(group, "t", i); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkLoad is a coordinator's start over a million commits of 1,000 groups.
func BenchmarkLoad(b *testing.B) {
	br := newBroker(b, clock.Real{}, map[string]string{"offsets.topic.segment.bytes": "104857600"})
	br.find("g")
	const perRequest = 1000
	for i := range 1000 {
		r := &CommitRequest{Group: fmt.Sprint("g", i), Generation: -1, RetentionMs: -1}
		for p := range int32(perRequest) {
			r.Offsets = append(r.Offsets, Committed{TP: store.TP{Topic: "t", Partition: p}, Offset: core.Offset{Offset: 1}})
		}
		must(b, br.co.Commit(r))
	}
	for b.Loop() {
		br.lead()
		br.ready()
	}
	b.ReportMetric(float64(br.co.Stats().Offsets), "offsets")
	b.ReportMetric(float64(br.co.Stats().Bytes>>20), "MiB")
}
