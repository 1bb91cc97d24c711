package batch

import (
	"math/rand/v2"
	"testing"
)

// Records of any size, so that every field crosses the edge of a chunk some time, sound or with one byte
// changed: Check and its twin must agree on all of them.
func TestChunkEdgesAgainstTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	some := func(max int) []byte {
		n := rnd.IntN(max)
		at := rnd.IntN(len(noise) - n)
		return noise[at : at+n]
	}
	for round := range 15 {
		var recs []rec
		for size := 0; size < 300<<10; {
			r := rec{T: int64(rnd.IntN(1 << 30)), Key: some(1 << rnd.IntN(12)), Value: some(1 << rnd.IntN(18))}
			for range rnd.IntN(4) {
				r.Headers = append(r.Headers, Header{Key: string(some(1 << rnd.IntN(10))), Value: some(1 << rnd.IntN(15))})
			}
			size += len(r.Key) + len(r.Value) + 10
			recs = append(recs, r)
		}
		plain := build(t, None, recs...)
		for change := range 3 {
			b := Batch(clone(plain))
			if change > 0 {
				// Near the edge of a chunk, where the fields are if they are anywhere.
				edge := chunkBytes*(1+rnd.IntN(3)) + rnd.IntN(64) - 32
				b[HeaderBytes+edge] ^= byte(1 << rnd.IntN(8))
				b.setCRC()
			}
			want, twinErr := twinCheck(b, Limits{})
			for _, c := range codecs {
				z, err := Recompress(b, c, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Check(z, Limits{})
				if (err == nil) != (twinErr == nil) || got != want {
					t.Fatalf("round %d, %v: %+v, %v; the twin has %+v, %v", round, c, got, err, want, twinErr)
				}
				n := 0
				walkErr := Walk(z, 0, func(*Record) error { n++; return nil })
				if (walkErr == nil) != (err == nil) {
					// A wrong offset delta is fine with Walk; nothing else is.
					if e, ok := err.(*CorruptError); !ok || e.Field != "offset delta" {
						t.Fatalf("round %d, %v: check %v, walk %v", round, c, err, walkErr)
					}
				}
			}
		}
	}
}
