package hddsim

import "time"

// aging is what gives 160 random reads a second at depth 32, as such drives have them. Without any, one stream of long reads
// would keep the arm from all others; with much more, the drive would work its queue off in order.
const aging = 0.04

// HDD7200 is a 7,200-rpm SATA drive of 4 TB: 150 MB/s outside, half of it inside, 8.5 ms of average seek; its write
// cache is off.
func HDD7200() DriveParams {
	return DriveParams{
		CapacityBytes: 4e12, RPM: 7200, OuterBytesPerSec: 150e6, InnerBytesPerSec: 75e6, Zones: 16, Heads: 8,
		TrackToTrack: 800 * time.Microsecond, AverageSeek: 8500 * time.Microsecond, FullStroke: 18 * time.Millisecond,
		WriteSettle: 300 * time.Microsecond, QueueDepth: 32, Aging: aging,
		CommandOverhead: 60 * time.Microsecond, InterfaceBytesPerSec: 550e6,
		ReadAheadBytes: 2 << 20, Segments: 16,
	}
}

// HDD5400 is a slow drive, as in small servers and at home.
func HDD5400() DriveParams {
	p := HDD7200()
	p.RPM, p.OuterBytesPerSec, p.InnerBytesPerSec = 5400, 110e6, 55e6
	p.AverageSeek, p.FullStroke = 12*time.Millisecond, 24*time.Millisecond
	return p
}

// HDD15000 is the fastest that ever spun: small platters, short ways.
func HDD15000() DriveParams {
	p := HDD7200()
	p.CapacityBytes, p.RPM, p.OuterBytesPerSec, p.InnerBytesPerSec = 600e9, 15000, 200e6, 130e6
	p.TrackToTrack, p.AverageSeek, p.FullStroke = 300*time.Microsecond, 3500*time.Microsecond, 8*time.Millisecond
	return p
}

// WithSeek is the drive with another average seek; the shortest and the longest keep their proportion to it.
func (p DriveParams) WithSeek(average time.Duration) DriveParams {
	scale := func(t time.Duration) time.Duration {
		return time.Duration(float64(t) * float64(average) / float64(p.AverageSeek))
	}
	p.TrackToTrack, p.FullStroke = scale(p.TrackToTrack), scale(p.FullStroke)
	p.AverageSeek = average
	return p
}

// SATASSD is an SSD behind SATA.
func SATASSD() SSDParams {
	return SSDParams{
		CapacityBytes: 1e12, Channels: 8, ReadLatency: 90 * time.Microsecond, WriteLatency: 40 * time.Microsecond,
		ReadBytesPerSec: 540e6, WriteBytesPerSec: 500e6, FlushLatency: 800 * time.Microsecond,
	}
}

// NVMe is an SSD on PCIe.
func NVMe() SSDParams {
	return SSDParams{
		CapacityBytes: 2e12, Channels: 64, ReadLatency: 70 * time.Microsecond, WriteLatency: 15 * time.Microsecond,
		ReadBytesPerSec: 3500e6, WriteBytesPerSec: 3000e6, FlushLatency: 300 * time.Microsecond,
	}
}

// Throttled150 is a fast disk that the kernel lets do 150 operations a second.
func Throttled150() ThrottleParams {
	return ThrottleParams{CapacityBytes: 1e12, OpsPerSec: 150, BytesPerSec: 2e9}
}
