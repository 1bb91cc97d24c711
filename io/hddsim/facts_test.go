package hddsim

import (
	"fmt"
	"testing"
	"time"
)

// growth is a workload: writers append to files, round robin, and the steady rate at the device is taken.
type growth struct {
	files, writers int
	batch          int64
	memory, dirty  int64 // of the cache and its dirty limit
	flushEvery     int64 // WriteBehind after so much of a file; 0: never
	prealloc       int64
	device         func(m *Machine) Device
	span           time.Duration
	unbounded      bool // the kernel's throttle holds bios, which no queue bounds
}

// run returns the MB/s written by the device in the second half, and in how many pieces the files lie on average.
func (g growth) run(t *testing.T) (rate, pieces float64) {
	t.Helper()
	m := &Machine{}
	p := DefaultVolume()
	if g.unbounded {
		p.WritesMax = 1 << 30
	}
	p.MemoryBytes, p.DirtyBytes, p.BackgroundBytes = g.memory, g.dirty, g.dirty/2
	v := NewVolume(m, g.device(m), p)
	files := make([]*Inode, g.files)
	for i := range files {
		files[i] = v.Create()
	}
	var actors []Actor
	for w := range g.writers {
		actors = append(actors, func(p *Proc) {
			ahead := map[*Inode]int64{}
			for i := w; ; i += g.writers {
				f := files[i%len(files)]
				if g.prealloc > 0 && f.Size()+g.batch > ahead[f] {
					if err := p.Preallocate(f, ahead[f], g.prealloc); err != nil {
						t.Error(err)
						return
					}
					ahead[f] += g.prealloc
				}
				before := f.Size()
				p.Append(f, g.batch)
				if g.flushEvery > 0 && before/g.flushEvery != f.Size()/g.flushEvery {
					p.WriteBehind(f, before/g.flushEvery*g.flushEvery, g.flushEvery)
				}
			}
		})
	}
	Run(v, g.span/2, 1, actors...)
	before := v.Device().Stats()
	Run(v, g.span/2, 2, actors...)
	after := v.Device().Stats()
	for _, f := range files {
		pieces += float64(f.Extents()) / float64(len(files))
	}
	return mbPerSec(after.WriteBytes-before.WriteBytes, g.span/2), pieces
}

func throttled(m *Machine) Device { return NewThrottle(m, Throttled150()) }

func hdd(m *Machine) Device { return NewQueue(m, NewDrive(m, HDD7200(), 1), DefaultQueue()) }

// The facts that DESIGN section 5 tells, on the disk that they were measured on: 150 operations a second.
func TestMeasuredFacts(t *testing.T) {
	base := growth{files: 1, writers: 1, batch: 64 << 10, memory: 8 << 30, dirty: 1600 << 20, device: throttled, span: 60 * time.Second}
	for _, dev := range []struct {
		name string
		d    func(m *Machine) Device
	}{{"throttled", throttled}, {"hdd", hdd}} {
		for _, c := range []struct {
			files, writers int
			dirty, flush   int64
		}{{1, 1, 1600 << 20, 0}, {256, 1, 1600 << 20, 0}, {256, 16, 1600 << 20, 0}, {1, 1, 1600 << 20, 128 << 10}, {256, 1, 1600 << 20, 128 << 10}, {256, 1, 128 << 20, 0}, {256, 16, 128 << 20, 0}} {
			g := base
			g.files, g.writers, g.dirty, g.flushEvery, g.device = c.files, c.writers, c.dirty, c.flush, dev.d
			g.unbounded = dev.name == "throttled"
			at := time.Now()
			rate, pieces := g.run(t)
			fmt.Println(dev.name, c, "MB/s", rate, "pieces", pieces, "in", time.Since(at))
		}
	}
}
