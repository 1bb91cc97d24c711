package spindlebench

import (
	"math"
	"slices"
	"time"

	"platter/engine/spindle/lane"
)

// Figures are what one situation gave.
type Figures struct {
	Load        Load
	BytesPerSec float64 // of all cold readers together
	Least, Most int64   // bytes that one of them got
	Append      Quantiles
	TailRead    Quantiles // from when the append was due until its reader has it
	CPUSeconds  float64   // of this process, its clients included; modelled ones have none
	Seconds     float64
	Lane        lane.Stats
}

// Quantiles of latencies.
type Quantiles struct {
	Count          int
	P50, P99, P999 time.Duration
	Max            time.Duration
}

func quantiles(ds []time.Duration) Quantiles {
	if len(ds) == 0 {
		return Quantiles{}
	}
	s := slices.Sorted(slices.Values(ds))
	at := func(q float64) time.Duration { return s[max(0, int(math.Ceil(q*float64(len(s))))-1)] }
	return Quantiles{len(s), at(0.5), at(0.99), at(0.999), s[len(s)-1]}
}

// Count is how many appends were measured.
func (f Figures) Count() int { return f.Append.Count }
