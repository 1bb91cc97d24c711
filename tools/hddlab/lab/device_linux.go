package lab

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"platter/io/hddsim"
)

// device paces the modelled drive along real time: the machine of io/hddsim, whose events a thread of its own
// runs when they fall due. An event that is run late does not move the ones behind it, so that the drive keeps its
// rate on a busy machine.
type device struct {
	drive *hddsim.Drive
	wake  int // an eventfd: there is a new event

	mu      sync.Mutex
	resumed sync.Cond
	machine *hddsim.Machine
	since   time.Time     // machine time was before then
	before  time.Duration // machine time at since
	stopped bool
	instant bool // requests take no time
	ended   bool
	waiting int
	ends    [runEnds]int64 // where the last requests ended
	next    int
	seeks   int64
}

// runEnds is how many runs are told apart: a request that goes on any of them is no seek. The kernel cuts a
// long run into requests, which the queue may swap.
const runEnds = 8

func newDevice(c Config) (*device, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	m := &hddsim.Machine{}
	d := &device{drive: hddsim.NewDrive(m, c.Drive(), 1), machine: m, wake: wake, since: time.Now()}
	d.resumed.L = &d.mu
	go d.pace()
	return d, nil
}

// do returns when the drive is done with a request of n bytes at pos.
func (d *device) do(kind hddsim.Kind, pos, n int64) {
	done := make(chan struct{})
	d.mu.Lock()
	d.waiting++
	for d.stopped && !d.ended {
		d.resumed.Wait()
	}
	if d.instant || d.ended {
		close(done)
	} else {
		if kind != hddsim.Flush {
			d.noteRun(pos, n)
		}
		d.machine.AdvanceTo(d.now())
		d.drive.Submit(&hddsim.Request{Kind: kind, Pos: pos, Len: n, Done: func() { close(done) }})
		d.poke()
	}
	d.mu.Unlock()
	<-done
	d.mu.Lock()
	d.waiting--
	d.mu.Unlock()
}

func (d *device) noteRun(pos, n int64) {
	for i, end := range d.ends {
		if end == pos {
			d.ends[i] = pos + n
			return
		}
	}
	d.seeks++
	d.ends[d.next] = pos + n
	d.next = (d.next + 1) % runEnds
}

// now is the machine's time. mu is held.
func (d *device) now() time.Duration {
	if d.stopped {
		return d.before
	}
	return d.before + time.Since(d.since)
}

// stop holds every request from now on; resume lets them go on where they were.
func (d *device) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.before, d.stopped = d.now(), true
	}
}

func (d *device) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		d.since, d.stopped = time.Now(), false
		d.resumed.Broadcast()
		d.poke()
	}
}

// setInstant makes requests take no time, or their time again.
func (d *device) setInstant(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.instant = on
	if on && !d.stopped {
		d.machine.Run()
		d.before, d.since = max(d.before, d.machine.Now()), time.Now()
	}
}

// end answers everything at once, now and later.
func (d *device) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.machine.Run()
	d.resumed.Broadcast()
	d.poke()
}

func (d *device) stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.drive.Stats()
	return Stats{
		Reads: s.Reads, Writes: s.Writes, Flushes: s.Flushes, ReadBytes: s.ReadBytes, WriteBytes: s.WriteBytes,
		Seeks: d.seeks, Elapsed: d.now(), Busy: s.Busy, Seeking: s.Seeking + s.Rotating,
		MeanRunBytes: (s.ReadBytes + s.WriteBytes) / max(1, d.seeks),
		Waiting:      d.waiting, Stopped: d.stopped,
	}
}

func (d *device) poke() { _, _ = unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// pace runs the machine's events when they fall due. The runtime's timers are too coarse for a disk's turns.
func (d *device) pace() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	for {
		d.mu.Lock()
		if d.ended {
			d.mu.Unlock()
			return
		}
		wait := time.Hour
		if !d.stopped {
			now := d.now()
			d.machine.AdvanceTo(now)
			if at, ok := d.machine.Next(); ok {
				wait = at - now
			}
		}
		d.mu.Unlock()
		ts := unix.NsecToTimespec(max(0, int64(wait)))
		if n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(d.wake), Events: unix.POLLIN}}, &ts, nil); n > 0 {
			var count [8]byte
			_, _ = unix.Read(d.wake, count[:])
		}
	}
}
