// Package lab is a modelled spinning disk that the kernel takes for a real one: a loop device with XFS or
// ext4 on it, over one big file of a FUSE file system whose reads, writes and syncs take the time of a disk
// with one actuator (io/hddsim). What is measured on it went through the real page cache, writeback, file
// system and I/O scheduler.
//
// # The parts of one lab
//
//	DIR/state.json   who serves it, which loop device it has
//	DIR/control      a Unix socket: stop, resume, speed, statistics, end
//	DIR/fuse/disk    the file behind the loop device, in memory or a sparse file
//	DIR/mnt          the file system: what is used
//
// A daemon, one process a lab, serves the FUSE file system, and sets up and takes down the rest. A lab belongs
// to the process that started it (Start: a pipe tells of its death, and the daemon takes the lab down) or to
// nobody (`hddlab up`), and then lives until Down. A daemon that was killed leaves a dead lab: its
// device answers with errors. Sweep, which every start does first, removes those.
//
// # Whose devices it touches
//
// Its own: a free loop device is taken from /dev/loop-control, and it is detached only while it is still
// attached to this lab's file. Linux and root only; Check tells what is missing.
package lab

import (
	"errors"
	"fmt"
	"time"

	"platter/io/hddsim"
)

// Config is one lab. The zero value of a field is its default.
type Config struct {
	Dir       string // made when it is missing
	FS        string // "xfs" (default) or "ext4"
	SizeBytes int64  // of the disk; default 8 GiB
	Backing   string // "" keeps the bytes in memory; else a directory, where a sparse file is made
	Buffered  bool   // the loop device goes through the page cache, instead of past it
	// BytesPerSec is the transfer rate, everywhere the same; default 160 MB/s.
	BytesPerSec int64
	// WriteCacheBytes is the drive's write cache; default none.
	WriteCacheBytes int64
	RPM             int           // default 7,200
	AverageSeek     time.Duration // default 8.5 ms; the other seeks keep their proportion to it
}

// Defaults fills in what is not set, and refuses what makes no sense.
func (c *Config) Defaults() error {
	if c.FS == "" {
		c.FS = "xfs"
	}
	if c.SizeBytes == 0 {
		c.SizeBytes = 8 << 30
	}
	if c.BytesPerSec == 0 {
		c.BytesPerSec = 160e6
	}
	if c.RPM == 0 {
		c.RPM = 7200
	}
	if c.AverageSeek == 0 {
		c.AverageSeek = 8500 * time.Microsecond
	}
	c.SizeBytes &^= sectorBytes - 1
	switch {
	case c.Dir == "":
		return errors.New("a lab needs a directory")
	case c.FS != "xfs" && c.FS != "ext4":
		return fmt.Errorf("file system %q: xfs or ext4", c.FS)
	case c.SizeBytes < sizeBytesMin || c.SizeBytes > sizeBytesMax:
		return fmt.Errorf("a disk of %d bytes: %d to %d", c.SizeBytes, int64(sizeBytesMin), int64(sizeBytesMax))
	case c.BytesPerSec < 1e6, c.BytesPerSec > 10e9:
		return fmt.Errorf("%d bytes a second: 1 MB/s to 10 GB/s", c.BytesPerSec)
	case c.WriteCacheBytes < 0, c.RPM < 1000, c.RPM > 30000:
		return fmt.Errorf("a write cache of %d bytes, %d turns a minute", c.WriteCacheBytes, c.RPM)
	case c.AverageSeek < time.Millisecond/10, c.AverageSeek > 100*time.Millisecond:
		return fmt.Errorf("an average seek of %v", c.AverageSeek)
	}
	return nil
}

// Drive is what is modelled: the 7,200-rpm drive of io/hddsim as if it were as small as the lab, so that all seeks are those of a full disk. c
// has its defaults.
func (c Config) Drive() hddsim.DriveParams {
	p := hddsim.HDD7200().WithSeek(c.AverageSeek)
	p.CapacityBytes, p.RPM, p.Zones = c.SizeBytes, c.RPM, 1
	p.OuterBytesPerSec, p.InnerBytesPerSec = c.BytesPerSec, c.BytesPerSec
	p.WriteCacheBytes = c.WriteCacheBytes
	return p
}

// Queue is the kernel's queue before it: as before any disk, but that FUSE cuts requests shorter.
func (c Config) Queue() hddsim.QueueParams {
	q := hddsim.DefaultQueue()
	q.RequestMax = requestBytesMax
	return q
}

// requestBytesMax is the longest FUSE request, and with it the longest of the loop device.
const requestBytesMax = 1 << 20

const (
	sectorBytes  = 4096
	sizeBytesMin = 320 << 20 // XFS wants 300 MiB
	sizeBytesMax = 1 << 40
)

// Stats is what the modelled disk has done since it was started or Reset.
type Stats struct {
	Reads, Writes, Flushes int64
	ReadBytes, WriteBytes  int64
	// Seeks are the requests that did not begin where another had ended.
	Seeks        int64
	MeanRunBytes int64         // bytes between two seeks
	Elapsed      time.Duration // without the time that it was stopped
	Busy         time.Duration // of Elapsed, the arm's and the platter's
	Seeking      time.Duration // of Busy, time that moved no data
	Waiting      int           // requests not yet answered
	Stopped      bool
}

// Sub is what was done between earlier and s.
func (s Stats) Sub(earlier Stats) Stats {
	s.Reads -= earlier.Reads
	s.Writes -= earlier.Writes
	s.Flushes -= earlier.Flushes
	s.ReadBytes -= earlier.ReadBytes
	s.WriteBytes -= earlier.WriteBytes
	s.Seeks -= earlier.Seeks
	s.Elapsed -= earlier.Elapsed
	s.Busy -= earlier.Busy
	s.Seeking -= earlier.Seeking
	s.MeanRunBytes = (s.ReadBytes + s.WriteBytes) / max(1, s.Seeks)
	return s
}

func (s Stats) String() string {
	text := fmt.Sprintf("%d reads (%.1f MB), %d writes (%.1f MB), %d flushes; %d seeks, runs of %d KiB; busy %.1f of %.1f s, %.1f of it without data",
		s.Reads, float64(s.ReadBytes)/1e6, s.Writes, float64(s.WriteBytes)/1e6, s.Flushes,
		s.Seeks, s.MeanRunBytes>>10, s.Busy.Seconds(), s.Elapsed.Seconds(), s.Seeking.Seconds())
	if s.Stopped {
		text += fmt.Sprintf("; stopped, %d requests wait", s.Waiting)
	}
	return text
}
