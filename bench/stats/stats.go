// Package stats condenses the runs of a bench: medians, and ratios of runs that were taken in pairs.
package stats

import (
	"cmp"
	"slices"
)

// Sample is one timed run: payload bytes moved, wall seconds, and the CPU seconds of the measured process.
type Sample struct {
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

// BytesPerSecond is the throughput.
func (s Sample) BytesPerSecond() float64 { return float64(s.Bytes) / s.Seconds }

// BytesPerCPUSecond is the efficiency: what one busy core moves in a second.
func (s Sample) BytesPerCPUSecond() float64 { return float64(s.Bytes) / s.CPUSeconds }

// CPUSecondsPerGB is the cost of 10^9 bytes.
func (s Sample) CPUSecondsPerGB() float64 { return s.CPUSeconds / float64(s.Bytes) * 1e9 }

// Median of the values; 0 for none. The slice is not changed.
func Median[T cmp.Ordered](vs []T) T {
	if len(vs) == 0 {
		var zero T
		return zero
	}
	s := slices.Sorted(slices.Values(vs))
	return s[(len(s)-1)/2]
}

// Each applies f to every sample.
func Each(ss []Sample, f func(Sample) float64) []float64 {
	out := make([]float64, len(ss))
	for i, s := range ss {
		out[i] = f(s)
	}
	return out
}

// Ratio is the median, smallest and largest of f(a[i])/f(b[i]): runs i of both sides were neighbours in
// time, so that what else the machine did weighs on both.
type Ratio struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// PairRatio computes the Ratio over pairs; a and b have the same length, at least one.
func PairRatio(a, b []Sample, f func(Sample) float64) Ratio {
	rs := make([]float64, len(a))
	for i := range a {
		rs[i] = f(a[i]) / f(b[i])
	}
	return Ratio{Median: Median(rs), Min: slices.Min(rs), Max: slices.Max(rs)}
}
