package spindlebench

import (
	"fmt"
	"time"

	"platter/engine/spindle"
	"platter/engine/spindle/lane"
	"platter/io/hddsim"
	"platter/io/profile"
)

// Devices are those of io/hddsim that a bench can be modelled on, by name.
var Devices = []string{"hdd7200", "hdd5400", "hdd15000", "raid10", "raid5", "ssd"}

// Maker makes a modelled device that Devices does not have.
type Maker func(m *hddsim.Machine, seed uint64) (hddsim.Device, error)

// device makes a modelled device with the kernel's queue before it: by name, unless there is a maker.
func device(m *hddsim.Machine, name string, maker Maker, seed uint64) (hddsim.Device, error) {
	if maker != nil {
		return maker(m, seed)
	}
	queue := hddsim.DefaultQueue()
	switch name {
	case "hdd7200":
		return hddsim.NewQueue(m, hddsim.NewDrive(m, hddsim.HDD7200(), seed), queue), nil
	case "hdd5400":
		return hddsim.NewQueue(m, hddsim.NewDrive(m, hddsim.HDD5400(), seed), queue), nil
	case "hdd15000":
		return hddsim.NewQueue(m, hddsim.NewDrive(m, hddsim.HDD15000(), seed), queue), nil
	case "ssd":
		return hddsim.NewQueue(m, hddsim.NewSSD(m, hddsim.SATASSD()), queue), nil
	case "raid10", "raid5":
		level := map[string]int{"raid10": 10, "raid5": 5}[name]
		return hddsim.NewArray(m, hddsim.DefaultRAID(level), hddsim.HDD7200(), 4, seed)
	}
	return nil, fmt.Errorf("no modelled device %q: there are %v", name, Devices)
}

// ParamsOf is how Platter treats a modelled device: by the profile that it would recognise.
func ParamsOf(name string, memoryBytes int64) spindle.Params {
	p := profile.Profile{Kind: profile.HDD}
	raid := hddsim.DefaultRAID(0)
	switch name {
	case "ssd":
		p.Kind = profile.SSD
	case "raid10":
		p.RAID = &profile.RAID{Level: "raid10", Disks: 4, Data: 2, ChunkBytes: raid.ChunkBytes}
	case "raid5":
		p.RAID = &profile.RAID{Level: "raid5", Disks: 4, Data: 3, ChunkBytes: raid.ChunkBytes}
	}
	return spindle.Suits(p.Defaults(), memoryBytes)
}

// world is a modelled machine: one disk, its page cache, and a lane over it, as package spindle drives one.
type world struct {
	m     *hddsim.Machine
	v     *hddsim.Volume
	p     spindle.Params
	lane  *lane.Lane
	files map[lane.FileID]*hddsim.Inode
	waits map[lane.AskID]func()
	asks  lane.AskID
	timer time.Duration
}

func newWorld(name string, maker Maker, seed uint64, vp hddsim.VolumeParams, p spindle.Params) (*world, error) {
	m := &hddsim.Machine{}
	dev, err := device(m, name, maker, seed)
	if err != nil {
		return nil, err
	}
	return &world{
		m: m, v: hddsim.NewVolume(m, dev, vp), p: p, lane: lane.New(p.Lane),
		files: map[lane.FileID]*hddsim.Inode{}, waits: map[lane.AskID]func(){},
	}, nil
}

// place makes a cold file.
func (w *world) place(bytes int64) (lane.FileID, error) {
	f, err := w.v.Place(bytes, 0)
	id := lane.FileID(len(w.files) + 1)
	w.files[id] = f
	return id, err
}

// act tells the lane of something and does what follows from it.
func (w *world) act(tell func(now time.Duration)) {
	now := w.m.Now() + 1
	if tell != nil {
		tell(now)
	}
	out := w.lane.Step(now)
	for _, id := range out.Wake {
		if then := w.waits[id]; then != nil {
			delete(w.waits, id)
			w.m.After(0, then)
		}
	}
	for _, r := range out.Runs {
		w.run(r)
	}
	for _, d := range out.Drops {
		if !w.p.Buffers {
			w.v.DontNeed(w.files[d.File], d.Pos, d.N, func() {})
		}
	}
	if out.Next > 0 && (w.timer <= now || out.Next < w.timer) {
		w.timer = out.Next
		w.m.At(out.Next-1, func() { w.act(nil) })
	}
}

// run reads a run as package spindle does.
func (w *world) run(r lane.Run) {
	f := w.files[r.File]
	done := func() { w.act(func(now time.Duration) { w.lane.Done(now, r.ID, r.N) }) }
	flight := max(w.p.FlightBytes, chunkBytes)
	if w.p.Buffers {
		if !r.Gentle {
			flight *= 2
		}
		w.each(r.Pos, r.N, flight, func(pos, n int64, next func()) {
			if pos+n == r.Pos+r.N && !r.Gentle {
				defer w.sent(r)
			}
			left := (n + chunkBytes - 1) / chunkBytes
			for at := pos; at < pos+n; at += chunkBytes {
				w.v.Read(f, nil, at, min(chunkBytes, pos+n-at), hddsim.ReadOptions{DontCache: true}, func() {
					if left--; left == 0 {
						next()
					}
				})
			}
		}, done)
		return
	}
	asked := int64(0)
	w.each(r.Pos, r.N, adviseBytes, func(at, n int64, next func()) {
		from, got := asked, at-r.Pos
		if !r.Gentle || got == asked {
			asked = max(asked, min(r.N, got+flight))
		}
		w.each(r.Pos+from, asked-from, adviseBytes, func(at, n int64, next func()) { w.v.WillNeed(f, at, n, next) }, func() {
			if asked == r.N && from < asked && !r.Gentle {
				w.sent(r)
			}
			w.v.Read(f, nil, at+n-1, 1, hddsim.ReadOptions{}, next)
		})
	}, done)
}

// sent says that all of a run is on its way.
func (w *world) sent(r lane.Run) { w.act(func(time.Duration) { w.lane.Sent(r.ID) }) }

// What package spindle does in steps of.
const (
	chunkBytes  = 1 << 20
	adviseBytes = 128 << 10
)

// each does [pos, pos+n) in steps, one after the other.
func (w *world) each(pos, n, step int64, do func(pos, n int64, next func()), done func()) {
	if n <= 0 {
		done()
		return
	}
	k := min(step, n)
	do(pos, k, func() { w.each(pos+k, n-k, step, do, done) })
}

// admit calls then once [pos, pos+n) may be read, as Spindle.admit does.
func (w *world) admit(id lane.FileID, pos, n int64, join bool, then func()) {
	f := w.files[id]
	if w.lane.Covers(id, pos, n) || join && !w.lane.Expects(id, pos) || w.v.Resident(f, pos, n) >= n {
		then()
		return
	}
	w.act(func(now time.Duration) {
		w.asks++
		w.waits[w.asks] = then
		if w.lane.Ask(now, w.asks, id, pos, n, f.Size()) {
			delete(w.waits, w.asks)
			w.m.After(0, then)
		}
	})
}

// reader fetches a file from start to end, a fetch at a time, as fast as it is served.
type reader struct {
	w     *world
	id    lane.FileID
	laned bool
	pos   int64
	taken int64 // bytes, in all
	h     hddsim.Reader
	look  hddsim.Reader
	stop  func() bool
}

const (
	// fetchBytes is Kafka's default of max.partition.fetch.bytes.
	fetchBytes = 1 << 20
	// lookBytes is what finding a batch reads of the log.
	lookBytes = 4 << 10
	// sendBytes is what sendfile moves at a time.
	sendBytes = 256 << 10
	// wireBytesPerSec is a client behind ten-gigabit Ethernet.
	wireBytesPerSec = 1.25e9
)

func wire(n int64) time.Duration {
	return time.Duration(float64(n) / wireBytesPerSec * float64(time.Second))
}

// fetch serves one fetch and begins the next.
func (r *reader) fetch() {
	f := r.w.files[r.id]
	n := min(fetchBytes, f.Size()-r.pos)
	if n <= 0 || r.stop() {
		return
	}
	look := func(then func()) {
		r.w.v.Read(f, &r.look, r.pos, min(lookBytes, n), hddsim.ReadOptions{}, then)
	}
	served := func() {
		r.pos += n
		r.taken += n
		r.fetch()
	}
	if !r.laned {
		look(func() { r.send(r.pos, n, served) })
		return
	}
	located := func() {
		r.w.each(r.pos, n, r.w.p.PieceBytes, func(at, k int64, next func()) {
			r.w.admit(r.id, at, k, false, func() {
				r.send(at, k, func() {
					r.w.act(func(now time.Duration) { r.w.lane.Took(now, r.id, at, k) })
					next()
				})
			})
		}, served)
	}
	if !r.w.lane.Knows(r.id) {
		look(located)
		return
	}
	r.w.admit(r.id, r.pos, min(lookBytes, n), true, func() {
		if r.w.p.Buffers && r.w.lane.Covers(r.id, r.pos, lookBytes) {
			located()
			return
		}
		look(located)
	})
}

// send moves bytes to the client: from the page cache, or from buffers of the broker's.
func (r *reader) send(pos, n int64, done func()) {
	if r.laned && r.w.p.Buffers && r.w.lane.Covers(r.id, pos, n) {
		r.w.m.After(wire(n), done)
		return
	}
	f := r.w.files[r.id]
	r.w.each(pos, n, sendBytes, func(at, k int64, next func()) {
		r.w.v.Read(f, &r.h, at, k, hddsim.ReadOptions{NoCopy: true}, func() { r.w.m.After(wire(k), next) })
	}, done)
}

// tail is an appender at a rate and a reader at its heels.
type tail struct {
	w       *world
	f       *hddsim.Inode
	batch   int64
	every   time.Duration
	grown   int64
	reader  hddsim.Reader
	appends []time.Duration
	reads   []time.Duration
	stop    func() bool
	busy    bool
	due     []time.Duration
}

func newTail(w *world, bytesPerSec, batch int64, stop func() bool) *tail {
	return &tail{w: w, f: w.v.Create(), batch: batch, stop: stop,
		every: time.Duration(float64(batch) / float64(bytesPerSec) * float64(time.Second))}
}

// tick makes an append due; it is made when those before it are done. Times count from when it was due.
func (t *tail) tick() {
	if t.stop() {
		return
	}
	t.due = append(t.due, t.w.m.Now())
	t.next()
	t.w.m.After(t.every, t.tick)
}

func (t *tail) next() {
	if t.busy || len(t.due) == 0 {
		return
	}
	t.busy = true
	at := t.due[0]
	t.due = t.due[1:]
	pos := t.f.Size()
	write := func() {
		t.w.v.Write(t.f, pos, t.batch, func() {
			t.appends = append(t.appends, t.w.m.Now()-at)
			t.w.lane.Busy(t.w.m.Now() + 1)
			t.busy = false
			t.w.v.Read(t.f, &t.reader, pos, t.batch, hddsim.ReadOptions{NoCopy: true}, func() {
				t.w.m.After(wire(t.batch), func() { t.reads = append(t.reads, t.w.m.Now()-at) })
			})
			t.next()
		})
	}
	if pos+t.batch <= t.grown {
		write()
		return
	}
	const grow = 64 << 20
	t.grown = pos + grow
	t.w.v.Preallocate(t.f, pos, grow, func(error) { write() })
}
