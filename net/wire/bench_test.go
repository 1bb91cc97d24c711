package wire

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/io/disk"
	"platter/net/frame"
)

func BenchmarkProduce(b *testing.B) {
	k := kmsg.NewPtrProduceRequest()
	k.Version = 9
	for _, name := range []string{"one", "two", "three"} {
		kt := kmsg.ProduceRequestTopic{Topic: name}
		for i := range int32(10) {
			kt.Partitions = append(kt.Partitions, kmsg.ProduceRequestTopicPartition{Partition: i, Records: make([]byte, 64<<10)})
		}
		k.Topics = append(k.Topics, kt)
	}
	body := k.AppendTo(nil)
	var resp ProduceResponse
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		q := GetProduceRequest()
		if err := q.Decode(9, body); err != nil {
			b.Fatal(err)
		}
		resp.Reset()
		for i := range q.Topics {
			t := resp.AddTopic(q.Topics[i].Name, q.Topics[i].ID)
			for _, p := range q.Topics[i].Partitions {
				t.AddPartition(p.Partition)
			}
		}
		dst = resp.Append(dst[:0], 9)
		q.Put()
	}
}

func BenchmarkFetch(b *testing.B) {
	body := kmsgFetch(12).AppendTo(nil)
	f := memFile{p: make([]byte, 1<<20)}
	var resp FetchResponse
	h := Header{Key: KeyFetch, Version: 12}
	ranges := []disk.Range{{File: f, Len: 1000}}
	b.ReportAllocs()
	for b.Loop() {
		q := GetFetchRequest()
		if err := q.Decode(12, body); err != nil {
			b.Fatal(err)
		}
		resp.Reset()
		for i := range q.Topics {
			t := resp.AddTopic(q.Topics[i].Name, q.Topics[i].ID)
			for _, p := range q.Topics[i].Partitions {
				t.AddPartition(p.Partition).Ranges = ranges
			}
		}
		r := frame.New()
		resp.Reply(r, h)
		r.Release()
		q.Put()
	}
}
