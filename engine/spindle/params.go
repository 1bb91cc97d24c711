package spindle

import (
	"time"

	"platter/engine/spindle/lane"
	"platter/io/profile"
)

// Params is how one device is treated. Sizes are bytes.
type Params struct {
	// Cold says whether cold readers take turns at all.
	Cold bool
	// Buffers: cold data is read past the page cache into memory of ours, at most Lane.MemoryBytes, and copied from there. Else it is read into the page cache,
	// sent from there by the kernel, and dropped behind the reader.
	Buffers bool
	Lane    lane.Params
	// FlightBytes is how much of a run is on its way at once: enough for the device to stream, and no more, since it is
	// what others find in its queue before them.
	FlightBytes int64
	// HotBytes: what was written so lately that the device has taken no more than this since is taken to be in the cache
	// without a look.
	HotBytes int64
	// PieceBytes is how much of a cold range is waited for and sent at a time.
	PieceBytes int64
	// BackgroundBytes is one read of a reader without haste.
	BackgroundBytes int64
	// WriteBehindBytes: runs of an append that are this long, WriteBehindMin at least, are handed to the device without waiting
	// for the kernel to do so; 0: that is left to the kernel, which is better on most.
	WriteBehindBytes int64
	// DirtyRunBytes is how much of one file the device should be given at a time when many grow: what the kernel's dirty budget
	// is compared with. 0: it is not.
	DirtyRunBytes int64
	// CutBytes is how much of a large file is given back at a time when it is deleted, with a pause of CutPause between;
	// 0: all at once.
	CutBytes int64
	CutPause time.Duration
}

// flightMin is a fortieth of a second of a spinning disk; a set with stripes gets several of them (profile's dirty run).
const flightMin = 4 << 20

// Suits is what suits a device, by its profile's defaults. memoryBytes is what cold readers may hold of the page cache
// together.
func Suits(d profile.Defaults, memoryBytes int64) Params {
	return Params{
		Cold: true,
		Lane: lane.Params{
			RunBytes: d.ColdRunBytes, FirstBytes: d.ColdFirstBytes, MemoryBytes: memoryBytes, Depth: d.ColdDepth,
			SharePercent: d.ColdSharePercent, TurnMax: 10 * time.Second, IdleAfter: 30 * time.Second,
			BehindBytes: 2 << 20, CloseBytes: 64 << 20, DropBytes: 4 << 20, StreamsMax: 1024,
		},
		FlightBytes: max(flightMin, d.DirtyRunBytes),
		HotBytes:    64 << 20, PieceBytes: 1 << 20, BackgroundBytes: 4 << 20,
		WriteBehindBytes: d.WriteBehindBytes, DirtyRunBytes: d.DirtyRunBytes,
		CutBytes: d.DeleteStepBytes, CutPause: d.DeletePause,
	}
}

// Rotational is Suits for a spinning disk, and for one of which nothing is known: no SSD suffers from it.
func Rotational(memoryBytes int64) Params {
	return Suits(profile.Profile{Kind: profile.HDD}.Defaults(), memoryBytes)
}
