// Package hddsim is a spinning disk, and RAID sets of them, as arithmetic: seek by distance, rotation, transfer by zone,
// command queueing, and above the device a model of the kernel's page cache and its writeback.
//
// # The parts, from below
//
//   - Machine is virtual time: a heap of events, run one after the other.
//   - Device is what takes block requests: Drive (one actuator), SSD (channels without a head), Throttle (so many
//     operations a second, wherever they are), RAID (levels 0, 1, 5, 6 and 10 over other devices) and Queue (the
//     kernel's request queue before a device: merging, deadlines, a bounded number in flight).
//   - Volume is a file system with its page cache over a device: delayed allocation in extents, dirty budget,
//     writeback inode by inode, readahead, residency, journal commits.
//   - Run drives actors (plain functions that read, write, sync and think, each in its own closed loop or at a rate)
//     over a Volume, for benches.
//   - FS is a disk.FS over any other one, which takes the modelled time for each of its operations.
//
// # Virtual time, and how code runs in it
//
// The machine, the devices and the volume are pure: no goroutine, no clock, no lock; the same calls in the same
// order, and the same seed, give the same times. Whoever owns a Machine calls it from one goroutine at a time.
// Times are durations since its start. Three drivers stand above it:
//
//   - Machine.Run and Run: for models that are events or actors all the way. Exact and repeatable.
//   - Live: for goroutines. It runs the machine along an io/clock, and a caller sleeps until its completion falls
//     due. With the real clock a modelled second lasts a second. Inside a testing/synctest bubble the real clock is
//     the bubble's fake one, and time flies.
//   - Lapse: a virtual clock for whole programs. It moves on when every goroutine of the process is blocked, so that the
//     engine's own code, with its mutexes and channels, runs in virtual time outside of tests too.
//
// # What it is not
//
// It is no real disk. Its parameters are a data sheet's, its cache policies the kernel's in outline. A figure
// that comes from it is to be called modelled.
package hddsim

import "time"

// Kind is what a request does.
type Kind uint8

const (
	// Read moves bytes from the device.
	Read Kind = iota
	// Write moves bytes to the device.
	Write
	// Flush is done when every write that was done before it is on the medium.
	Flush
)

func (k Kind) String() string { return [...]string{"read", "write", "flush"}[k] }

// Request is one block request. The device owns it from Submit until it calls Done, exactly once, at the
// machine's time of completion; the submitter may use it again then.
type Request struct {
	Kind Kind
	Pos  int64 // bytes from the device's start
	Len  int64 // above 0, but for Flush
	FUA  bool  // a write that is not done before it is on the medium
	More bool  // a write whose next bytes follow at once: a RAID set waits for them before it reads to fill up a stripe
	Done func()

	at time.Duration // when it came to the drive
}

func (r *Request) end() int64 { return r.Pos + r.Len }

// Device takes requests at its machine's time. Requests within the size; any number at once.
type Device interface {
	Submit(r *Request)
	SizeBytes() int64
	Stats() Stats
}

// Stats is what a device has done so far. Of a RAID set and a queue it is the sum over what is below.
type Stats struct {
	Reads, Writes, Flushes int64
	ReadBytes, WriteBytes  int64
	Busy                   time.Duration // of the mechanism or the channels
	Seeking, Rotating      time.Duration // parts of Busy that moved no data
	BufferHits             int64         // reads that the drive's own buffer answered
}

func (s *Stats) add(o Stats) {
	s.Reads += o.Reads
	s.Writes += o.Writes
	s.Flushes += o.Flushes
	s.ReadBytes += o.ReadBytes
	s.WriteBytes += o.WriteBytes
	s.Busy += o.Busy
	s.Seeking += o.Seeking
	s.Rotating += o.Rotating
	s.BufferHits += o.BufferHits
}

func (s *Stats) count(r *Request) {
	switch r.Kind {
	case Read:
		s.Reads++
		s.ReadBytes += r.Len
	case Write:
		s.Writes++
		s.WriteBytes += r.Len
	case Flush:
		s.Flushes++
	}
}

// over is how long n bytes take at a rate.
func over(n, bytesPerSec int64) time.Duration {
	return time.Duration(float64(n) / float64(bytesPerSec) * float64(time.Second))
}
