package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

func TestIntervalOfKnownRatios(t *testing.T) {
	a, b := []float64{2, 6, 20, 40, 8}, []float64{1, 3, 10, 20, 4}
	if i := PairInterval(a, b, 1); !near(i.Ratio, 2) || !near(i.Low, 2) || !near(i.High, 2) || i.Width() > 1e-12 {
		t.Errorf("always twice: %+v", i)
	}
	if i := PairInterval([]float64{3}, []float64{2}, 1); !near(i.Ratio, 1.5) || !near(i.Low, 1.5) || !near(i.High, 1.5) {
		t.Errorf("one pair: %+v", i)
	}
	if i := PairInterval([]float64{1, 4}, []float64{1, 1}, 1); !near(i.Ratio, 2) || !near(i.Low, 1) || !near(i.High, 4) {
		t.Errorf("two pairs: %+v", i)
	}
	// One hiccup among many does not move it.
	a, b = make([]float64, 21), make([]float64, 21)
	for i := range a {
		a[i], b[i] = 1.1, 1
	}
	a[7] = 100
	if i := PairInterval(a, b, 1); !near(i.Ratio, 1.1) || !near(i.Low, 1.1) || !near(i.High, 1.1) {
		t.Errorf("a hiccup: %+v", i)
	}
}

func TestIntervalIsSeededAndSymmetric(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	a, b := make([]float64, 15), make([]float64, 15)
	for i := range a {
		a[i], b[i] = math.Exp(rnd.NormFloat64()), math.Exp(rnd.NormFloat64())
	}
	one := PairInterval(a, b, 7)
	if two := PairInterval(a, b, 7); one != two {
		t.Errorf("the same seed gave %+v and %+v", one, two)
	}
	// The order statistics of the inverse are those of the ratio, from the other end.
	turned, back := PairInterval(b, a, 7), one.Inverse()
	if !near(turned.Ratio, back.Ratio) || math.Abs(turned.Low/back.Low-1) > 0.3 || math.Abs(turned.High/back.High-1) > 0.3 {
		t.Errorf("turned round %+v, inverse %+v", turned, back)
	}
}

// TestIntervalCovers: of many experiments with a known ratio about 95 in 100 have it in their interval.
func TestIntervalCovers(t *testing.T) {
	const ratio, experiments, pairs = 1.25, 400, 15
	rnd := rand.New(rand.NewPCG(5, 6))
	covered := 0
	for e := range experiments {
		a, b := make([]float64, pairs), make([]float64, pairs)
		for i := range a {
			mood := math.Exp(0.5 * rnd.NormFloat64()) // what the machine does weighs on both
			a[i] = ratio * mood * math.Exp(0.1*rnd.NormFloat64())
			b[i] = mood * math.Exp(0.1*rnd.NormFloat64())
		}
		if i := PairInterval(a, b, uint64(e)); i.Low <= ratio && ratio <= i.High {
			covered++
		}
	}
	if covered < experiments*90/100 || covered > experiments*99/100 {
		t.Errorf("%d of %d intervals hold the ratio", covered, experiments)
	}
}
