package hddsim

import "testing"

// The figures that systems like this one were built on: a spinning disk moves 150 MB/s in order and does a hundred
// operations a second out of it, so that on a RAID set the two are a factor of thousands apart. Where each comes from is
// checked beside its own part (drive_test.go, raid_test.go); this is the sum.
func TestClassicFigures(t *testing.T) {
	const small = 4096
	disk := func(level int) (*Machine, Device) {
		m := &Machine{}
		if level < 0 {
			return m, hdd(m)
		}
		p := DefaultRAID(level)
		p.StripeCache = 2048
		return m, arrayOf(t, m, p, 6)
	}
	inOrder := func(level int, kind Kind) float64 {
		m, d := disk(level)
		const n, count = 1 << 20, 2000
		next := sequential(0, n, kind)
		took, _ := Loop(m, d, 32, count, func(i int) Request { r := next(i); r.More = i+1 < count; return r })
		return mbPerSec(n*count, took)
	}
	atRandom := func(level, depth int, kind Kind) float64 {
		m, d := disk(level)
		const count = 1500
		took, _ := Loop(m, d, depth, count, randomAt(d, small, kind, 1))
		return perSec(count, took)
	}
	within := func(what string, got, from, to float64) float64 {
		t.Helper()
		t.Logf("%-56s %8.2f (%.4g to %.4g)", what, got, from, to)
		if got < from || got > to {
			t.Errorf("%s: %.2f, want %.4g to %.4g", what, got, from, to)
		}
		return got
	}
	mb := func(perSec float64) float64 { return perSec * small / 1e6 }

	within("7,200 rpm: sequential reads, MB/s", inOrder(-1, Read), 145, 155)
	within("7,200 rpm: sequential writes, MB/s", inOrder(-1, Write), 140, 155)
	one := within("7,200 rpm: random reads at depth 1, a second", atRandom(-1, 1, Read), 75, 90)
	within("7,200 rpm: random reads at depth 32, a second", atRandom(-1, 32, Read), 150, 170)
	within("7,200 rpm: random writes at depth 1, a second", atRandom(-1, 1, Write), 75, 90)

	fast := within("RAID-5 of 6: sequential reads, MB/s", inOrder(5, Read), 600, 760)
	within("RAID-5 of 6: sequential writes, MB/s", inOrder(5, Write), 400, 760)
	slow := within("RAID-5 of 6: 4-KiB random writes at depth 1, MB/s", mb(atRandom(5, 1, Write)), 0.15, 0.25)
	within("RAID-5 of 6: 4-KiB random writes at depth 32, MB/s", mb(atRandom(5, 32, Write)), 0.5, 2)
	alone := within("RAID-5 of 6: random reads at depth 1, a second", atRandom(5, 1, Read), 0.95*one, 1.05*one)
	within("RAID-5 of 6: random reads at depth 32, a second", atRandom(5, 32, Read), 5*alone, 12*alone)
	within("RAID-5 of 6: linear over random", fast/slow, 2000, 6000)

	within("RAID-6 of 6: 4-KiB random writes at depth 1, MB/s", mb(atRandom(6, 1, Write)), 0.1, 0.2)
	within("RAID-10 of 6: sequential writes, MB/s", inOrder(10, Write), 400, 455)
	within("RAID-10 of 6: 4-KiB random writes at depth 1, MB/s", mb(atRandom(10, 1, Write)), 0.2, 0.35)
	within("RAID-0 of 6: sequential reads, MB/s", inOrder(0, Read), 800, 905)
}
