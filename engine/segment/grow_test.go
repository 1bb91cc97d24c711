package segment

import "testing"

func TestGrowth(t *testing.T) {
	const mib, lots = 1 << 20, 1 << 50
	g := DefaultGrowth
	chunk := int64(0)
	for i, want := range []int64{1, 2, 4, 8, 16, 32, 64, 64} {
		if chunk = g.Next(chunk, 1000, lots); chunk != want*mib {
			t.Errorf("chunk %d of a busy partition: %d MiB, want %d", i, chunk/mib, want)
		}
	}
	for _, c := range []struct {
		name                    string
		chunk, lasted, free, is int64
	}{
		{"neither busy nor idle", 8 * mib, 30_000, lots, 8 * mib},
		{"idle", 8 * mib, 60_000, lots, 4 * mib},
		{"idle for long", mib, 1 << 40, lots, mib},
		{"little room", 64 * mib, 1, 640 * mib, 10 * mib},
		{"hardly any room", 64 * mib, 1, 64 * mib, mib},
		{"no room", mib, 1, 63 * mib, 0},
	} {
		if got := g.Next(c.chunk, c.lasted, c.free); got != c.is {
			t.Errorf("%s: %d, want %d", c.name, got, c.is)
		}
	}
	if got := (Growth{FirstBytes: 4 * mib, MaxBytes: 4 * mib}).Next(4*mib, 1, lots); got != 4*mib {
		t.Errorf("a bound that is the first chunk: %d", got)
	}
}
