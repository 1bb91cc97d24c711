package clients

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"platter/engine/batch"
)

// TestJavaVerdicts puts batches with something changed before our check and before Kafka's LogValidator.
// What we take, Kafka must take and be able to read back, with the same largest timestamp: a batch that
// breaks a reader must not get into a log. What we refuse although Kafka takes it must be of the few kinds
// in which we are stricter on purpose.
func TestJavaVerdicts(t *testing.T) {
	cp := kafkaTools(t)
	need(t, "javac")
	const count = 6000
	const seed = 20260101
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var in bytes.Buffer
	var batches []batch.Batch
	for range count {
		b := mutant(t, rnd)
		batches = append(batches, b)
		in.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		in.Write(b)
	}
	out := string(run(t, &in, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", cp, "java/Verdicts.java"))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != count {
		t.Fatalf("%d verdicts for %d batches: %.2000s", len(lines), count, out)
	}
	taken, refused := 0, 0
	for i, b := range batches {
		info, err := batch.Check(b, batch.Limits{})
		if err == nil && b.Control() {
			err = batch.ErrInvalid // which the log says, not the check
		}
		kafka := lines[i]
		switch {
		case err == nil && kafka == fmt.Sprint("ok ", info.MaxTimestampMs):
			taken++
		case err != nil && strings.HasPrefix(kafka, "no "):
			refused++
		case err == nil:
			t.Errorf("batch %d (%v) is taken with largest timestamp %d; Kafka: %s\n%x", i, b.Codec(), info.MaxTimestampMs, kafka, b)
		case !stricter(err):
			t.Errorf("batch %d (%v): %v; Kafka: %s\n%x", i, b.Codec(), err, kafka, b)
		}
	}
	t.Logf("%d taken and %d refused by both, of %d", taken, refused, count)
	if taken < count/10 || refused < count/10 {
		t.Error("the changes are too rough, or too soft, to say much")
	}
}

// stricter are the refusals that are ours alone: offset deltas out of sequence (Kafka writes the batch
// anew), a length below -1 (Kafka: null), a time type that only the broker may set (Kafka: on topics that
// have it, else it is reset), and what is wrong around the data in a compressed stream: headers, checksums,
// the end.
func stricter(err error) bool {
	var e *batch.CorruptError
	if !errors.As(err, &e) {
		return false
	}
	return e.Field == "offset delta" || strings.HasSuffix(e.Field, "value length") || e.Field == "key length" ||
		errors.Is(err, batch.ErrTimestamp) && e.Field == "attributes" || errors.Is(err, batch.ErrInflate)
}

// mutant is a batch in some codec, most often with some bytes changed before or after compression. Length
// and CRC are right, or nothing else would ever be looked at.
func mutant(t *testing.T, rnd *rand.Rand) batch.Batch {
	t.Helper()
	bl := batch.NewBuilder()
	for range 1 + rnd.IntN(8) {
		var headers []batch.Header
		for range rnd.IntN(3) {
			headers = append(headers, batch.Header{Key: fmt.Sprint("h", rnd.IntN(9)), Value: someBytes(rnd, 9)})
		}
		bl.Add(rnd.Int64N(1<<rnd.IntN(42)+1)-1, someBytes(rnd, 20), someBytes(rnd, 1<<rnd.IntN(9)), headers...)
	}
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	const attributes = 21
	if rnd.IntN(5) == 0 {
		b = changed(rnd, b, attributes)
	} else if rnd.IntN(3) > 0 {
		b = changed(rnd, b, batch.HeaderBytes)
	}
	if !b.Codec().Valid() || b.Codec() != batch.None {
		return b // a change made it say so: no codec's bytes
	}
	c := batch.Codec(rnd.IntN(5))
	z, err := batch.Recompress(b, c, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rnd.IntN(4) == 0 && len(z) > batch.HeaderBytes {
		z = changed(rnd, z, batch.HeaderBytes)
	}
	return z
}

func someBytes(rnd *rand.Rand, most int) []byte {
	if rnd.IntN(4) == 0 {
		return nil
	}
	p := make([]byte, rnd.IntN(most+1))
	for i := range p {
		p[i] = byte(rnd.IntN(4)) // compresses
	}
	return p
}

// changed changes up to two bytes from pos on, or drops one.
func changed(rnd *rand.Rand, b batch.Batch, pos int) batch.Batch {
	b = bytes.Clone(b)
	for range 1 + rnd.IntN(2) {
		at := pos + rnd.IntN(len(b)-pos)
		switch rnd.IntN(4) {
		case 0:
			b[at] ^= 1 << rnd.IntN(8)
		case 1:
			b[at] = byte(rnd.Uint32())
		case 2:
			b[at] += 2
		case 3:
			if len(b) > batch.HeaderBytes+1 {
				b = append(b[:at], b[at+1:]...)
			}
		}
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batch.LogOverheadBytes))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
