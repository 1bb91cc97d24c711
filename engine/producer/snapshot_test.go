package producer

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is a snapshot of two producers, written out by hand from Kafka's schema.
const golden = `
0001 d5fc0aab 00000002
0000000000000001 0000 00000009 0000000000000009 00000004 000001876543210f ffffffff ffffffffffffffff
0000000000000fa0 0003 ffffffff ffffffffffffffff 00000000 0000018765432110 ffffffff ffffffffffffffff`

func goldenBytes(t testing.TB) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.Join(strings.Fields(golden), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSnapshotGolden(t *testing.T) {
	want := []SnapshotEntry{
		{ProducerID: 1, LastSequence: 9, LastOffset: 9, OffsetDelta: 4, TimestampMs: 0x1876543210f, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1},
		{ProducerID: 4000, Epoch: 3, LastSequence: -1, LastOffset: -1, TimestampMs: 0x18765432110, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1},
	}
	if d := cmp.Diff(hex.EncodeToString(goldenBytes(t)), hex.EncodeToString(EncodeSnapshot(want))); d != "" {
		t.Error(d)
	}
	got, err := DecodeSnapshot(goldenBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSnapshotDamage(t *testing.T) {
	p := goldenBytes(t)
	for i := range p {
		q := append([]byte(nil), p...)
		q[i] ^= 0x10
		if _, err := DecodeSnapshot(q); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("bit flipped in byte %d: %v", i, err)
		}
		if _, err := DecodeSnapshot(p[:i]); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	f.Add(goldenBytes(f))
	f.Add(EncodeSnapshot(nil))
	f.Add([]byte{0, 1})
	f.Fuzz(func(t *testing.T, p []byte) {
		entries, err := DecodeSnapshot(p)
		if err != nil {
			if !errors.Is(err, ErrCorruptSnapshot) {
				t.Fatal(err)
			}
			return
		}
		s := New()
		s.Restore(entries, 0, 1<<62)
		if again, err := DecodeSnapshot(EncodeSnapshot(s.Snapshot())); err != nil || len(again) > len(entries) {
			t.Fatalf("does not survive a round: %v", err)
		}
	})
}
