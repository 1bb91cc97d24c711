package stats

import "testing"

func TestMedianAndPairRatio(t *testing.T) {
	if m := Median([]int{5, 1, 9}); m != 5 {
		t.Errorf("median of three is %d", m)
	}
	if m := Median([]float64(nil)); m != 0 {
		t.Errorf("median of none is %v", m)
	}
	a := []Sample{{100, 1, 1}, {300, 1, 1}, {80, 1, 1}}
	b := []Sample{{100, 1, 1}, {100, 1, 1}, {100, 1, 1}}
	if r := PairRatio(a, b, Sample.BytesPerSecond); r != (Ratio{1, 0.8, 3}) {
		t.Errorf("ratio %+v", r)
	}
}
