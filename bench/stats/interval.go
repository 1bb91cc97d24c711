package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is the median of the ratios of pairs, and where it lies with 95% confidence.
type Interval struct {
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// resamples of the bootstrap: enough for two digits of a 95% interval.
const resamples = 2000

// PairInterval computes the Interval of a[i]/b[i], which are values above zero of neighbouring runs, by the
// percentile bootstrap of the median ratio (Efron and Tibshirani, An Introduction to the Bootstrap,
// chapter 13). The median, since a hiccup of a shared machine must not count by its size. The same seed
// gives the same interval. a and b have the same length, at least one.
func PairInterval(a, b []float64, seed uint64) Interval {
	logs := make([]float64, len(a))
	for i := range a {
		logs[i] = math.Log(a[i] / b[i])
	}
	rnd := rand.New(rand.NewPCG(seed, uint64(len(a))))
	medians := make([]float64, resamples)
	sample := make([]float64, len(logs))
	for i := range medians {
		for j := range sample {
			sample[j] = logs[rnd.IntN(len(logs))]
		}
		medians[i] = middle(sample)
	}
	slices.Sort(medians)
	copy(sample, logs)
	return Interval{
		Ratio: math.Exp(middle(sample)),
		Low:   math.Exp(medians[resamples*25/1000]),
		High:  math.Exp(medians[resamples-1-resamples*25/1000]),
	}
}

// middle is the median, of the two in the middle their mean, so that it is as far from a ratio as from its
// inverse. It sorts vs.
func middle(vs []float64) float64 {
	slices.Sort(vs)
	n := len(vs)
	return (vs[(n-1)/2] + vs[n/2]) / 2
}

// Inverse is the interval of b[i]/a[i].
func (i Interval) Inverse() Interval { return Interval{1 / i.Ratio, 1 / i.High, 1 / i.Low} }

// Width is how far the interval reaches from its middle, as a fraction: 0.02 is 2% to each side.
func (i Interval) Width() float64 { return math.Sqrt(i.High/i.Low) - 1 }
