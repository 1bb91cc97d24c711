package api_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The benchmarks go over a real connection to a broker on a disk in memory; what they allocate includes
// the peer's side, which is a few small objects a request.

func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			br := startBroker(b, map[string]string{"log.retention.bytes": "67108864", "log.segment.bytes": "33554432"})
			br.create("t", 1)
			p := br.dial()
			req := produceRequest("t", [16]byte{}, 0, -1, records(1, strings.Repeat("x", size-100)))
			req.SetVersion(9)
			frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
			answer := make([]byte, 4096)
			p.nc.Write(frame)
			n, _ := p.nc.Read(answer)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.nc.Write(frame); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(p.nc, answer[:n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			br := startBroker(b, nil)
			br.create("t", 1)
			p := br.dial()
			p.produce("t", 0, records(1, strings.Repeat("x", size-100)))
			req := fetchRequest("t", [16]byte{}, 0, 0)
			req.SetVersion(12)
			frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
			p.nc.Write(frame)
			body, err := p.frame()
			must(b, err)
			answer := bytes.Clone(body)
			answer = append(answer, 0, 0, 0, 0)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.nc.Write(frame); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(p.nc, answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
