package lab

import (
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	c := Config{Dir: "d"}
	if err := c.Defaults(); err != nil || c.FS != "xfs" || c.SizeBytes != 8<<30 || c.BytesPerSec != 160e6 || c.RPM != 7200 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []Config{
		{}, {Dir: "d", FS: "vfat"}, {Dir: "d", SizeBytes: 1 << 20}, {Dir: "d", SizeBytes: 1 << 50}, {Dir: "d", BytesPerSec: 1},
		{Dir: "d", RPM: 1}, {Dir: "d", WriteCacheBytes: -1}, {Dir: "d", AverageSeek: time.Hour},
	} {
		if err := bad.Defaults(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestStatsSub(t *testing.T) {
	a := Stats{Reads: 1, ReadBytes: 100, Seeks: 1, Busy: time.Second}
	b := Stats{Reads: 5, ReadBytes: 1100, Writes: 2, WriteBytes: 1000, Seeks: 5, Busy: 3 * time.Second}
	if d := b.Sub(a); d.Reads != 4 || d.MeanRunBytes != 500 || d.Busy != 2*time.Second || d.Writes != 2 {
		t.Errorf("%+v", d)
	}
}
