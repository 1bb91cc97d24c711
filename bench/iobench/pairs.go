package iobench

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"platter/bench/cputime"
	"platter/bench/stats"
)

// load is one side at work. run does n rounds; what it times goes through the meter.
type load interface {
	run(m *meter, n int) error
	// roundsMax bounds a run, 0: it has no bound of its own.
	roundsMax() int
	close() error
}

// meter adds up wall and CPU time of what is between start and stop.
type meter struct {
	bytes      int64
	perByte    []float64 // seconds, of each round since the last take
	wall, cpu  time.Duration
	wall0      time.Time
	cpu0       time.Duration
	latencies  *hdrhistogram.Histogram
	roundStart time.Time
}

func newMeter() *meter { return &meter{latencies: hdrhistogram.New(1, int64(time.Minute), 3)} }

func (m *meter) start() {
	m.cpu0, _ = cputime.Of(os.Getpid())
	m.wall0 = time.Now()
	m.roundStart = m.wall0
}

// round notes the end of one round, and its payload.
func (m *meter) round(bytes int64) {
	now := time.Now()
	m.bytes += bytes
	m.perByte = append(m.perByte, now.Sub(m.roundStart).Seconds()/float64(bytes))
	_ = m.latencies.RecordValue(max(1, int64(now.Sub(m.roundStart)))) // one beyond a minute is left out
	m.roundStart = now
}

func (m *meter) stop() {
	m.wall += time.Since(m.wall0)
	cpu, _ := cputime.Of(os.Getpid())
	m.cpu += cpu - m.cpu0
}

// take puts what came since the last take among the side's runs.
func (m *meter) take(s *Side) {
	s.Samples = append(s.Samples, stats.Sample{Bytes: m.bytes, Seconds: m.wall.Seconds(), CPUSeconds: m.cpu.Seconds()})
	s.Typical = append(s.Typical, 1/max(stats.Median(m.perByte), 1e-15))
	m.bytes, m.wall, m.cpu, m.perByte = 0, 0, 0, m.perByte[:0]
}

// measure fills in the cell's figures.
func (b *bench) measure(ctx context.Context, c *Cell) (err error) {
	cellTime := b.o.CellTime
	if c.Group == AutoChoice || c.Group == Empty {
		cellTime *= 4
	}
	deadline := time.Now().Add(cellTime)
	var loads [2]load
	sides := [2]*Side{&c.A, &c.B}
	defer func() {
		for _, l := range loads {
			if l != nil {
				err = errors.Join(err, l.close())
			}
		}
	}()
	for i, s := range sides {
		if loads[i], err = b.load(c, s); err != nil {
			return err
		}
	}
	rounds, err := b.calibrate(loads)
	if err != nil {
		return err
	}
	for i, l := range loads {
		if sides[i].Calls, err = countCalls(l, rounds); err != nil {
			return err
		}
	}
	meters := [2]*meter{newMeter(), newMeter()}
	for pair := 0; pair < b.o.PairsMax; pair++ {
		if pair >= b.o.PairsMin && (time.Now().After(deadline) || c.Throughput.Width() < b.o.WidthMax) {
			break
		}
		for i := range 2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			side := i ^ pair&1
			if err := loads[side].run(meters[side], rounds); err != nil {
				return err
			}
			meters[side].take(sides[side])
		}
		c.Pairs = pair + 1
		c.Throughput = stats.PairInterval(c.A.Typical, c.B.Typical, b.o.Seed)
	}
	c.Overall = ratio(c, stats.Sample.BytesPerSecond, b.o.Seed)
	for i, s := range sides {
		s.sum(meters[i].latencies)
	}
	if stats.Median(cpuSeconds(&c.A)) > 0 && stats.Median(cpuSeconds(&c.B)) > 0 {
		c.CPU = ratio(c, cpuCost, b.o.Seed)
	}
	return nil
}

func ratio(c *Cell, f func(stats.Sample) float64, seed uint64) stats.Interval {
	return stats.PairInterval(stats.Each(c.A.Samples, f), stats.Each(c.B.Samples, f), seed)
}

// cpuCost is never zero: a clock that has not moved counts as its resolution.
func cpuCost(s stats.Sample) float64 { return max(s.CPUSeconds, 1e-9) / float64(s.Bytes) }

func cpuSeconds(s *Side) []float64 {
	return stats.Each(s.Samples, func(x stats.Sample) float64 { return x.CPUSeconds })
}

// calibrate finds how many rounds take the time of a sample, by the mean of both sides, which are warm
// then.
func (b *bench) calibrate(loads [2]load) (int, error) {
	most := 1 << 30
	for _, l := range loads {
		if n := l.roundsMax(); n > 0 {
			most = min(most, n)
		}
	}
	for n := 1; ; {
		var took time.Duration
		for _, l := range loads {
			m := newMeter()
			if err := l.run(m, n); err != nil {
				return 0, err
			}
			took += m.wall / 2
		}
		if took >= b.o.SampleTime/4 || n >= most {
			n = int(float64(n) * float64(b.o.SampleTime) / float64(max(took, time.Microsecond)))
			return min(max(n, 1), most), nil
		}
		n = min(4*n, most)
	}
}

// sum fills in what stands for all samples.
func (s *Side) sum(h *hdrhistogram.Histogram) {
	s.BytesPerSecond = stats.Median(s.Typical)
	s.CPUSecondsPerGB = stats.Median(stats.Each(s.Samples, stats.Sample.CPUSecondsPerGB))
	us := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	s.P50Us, s.P99Us, s.P999Us = us(50), us(99), us(99.9)
}
