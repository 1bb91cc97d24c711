package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchBatch is about size bytes of records whose values are valueBytes of log-like text.
func benchBatch(b *testing.B, c Codec, size, valueBytes int) Batch {
	rnd := rand.New(rand.NewPCG(3, 4))
	value := make([]byte, valueBytes)
	bl := NewBuilder()
	bl.Codec = c
	for i := 0; bl.SizeBytes() < size; i++ {
		line := fmt.Appendf(nil, "10.0.%d.%d - - [29/Nov/2026:17:00:%02d +0000] \"GET /item/%d HTTP/1.1\" 200 %d ",
			rnd.IntN(256), rnd.IntN(256), i%60, rnd.IntN(100_000), rnd.IntN(1<<16))
		for n := 0; n < len(value); n += len(line) {
			copy(value[n:], line)
		}
		bl.Add(1_800_000_000_000+int64(i), nil, value)
	}
	out, err := bl.Build()
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// BenchmarkCheck shows what the walk adds to the CRC, and that nothing is allocated per call.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		for _, value := range []int{100, 1000, 10_000} {
			for _, c := range codecs {
				x := benchBatch(b, c, size, value)
				b.Run(fmt.Sprintf("%dKiB/values=%d/%v", size>>10, value, c), func(b *testing.B) {
					b.SetBytes(int64(size))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := Check(x, Limits{CheckTimestamps: true, BeforeMaxMs: 1 << 62, AfterMaxMs: 1 << 62}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkCRC is the floor of BenchmarkCheck.
func BenchmarkCRC(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		x := benchBatch(b, None, size, 1000)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := CheckCRC(x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRecompress(b *testing.B) {
	x := benchBatch(b, None, 64<<10, 1000)
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			b.SetBytes(int64(len(x)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Recompress(x, c, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
