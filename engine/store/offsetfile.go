package store

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"platter/engine/checkpoint"
	"platter/io/atomicfile"
	"platter/io/disk"
)

// offsetFile is one offset checkpoint: what is on disk, and who may write it when.
//
// write rounds gather fresh values and replace the file; lower takes a value back at once. Both may run at the same
// time: a value that was gathered before it was lowered is not written.
type offsetFile struct {
	fs   disk.FS
	path string

	round   sync.Mutex // one write at a time
	writing sync.Mutex // guards the file

	mu      sync.Mutex
	onDisk  checkpoint.Offsets
	caps    checkpoint.Offsets // bounds that are not on disk yet
	lowered checkpoint.Offsets // bounds set since the running round began to gather; nil: no round runs
}

// load reads the file. An unreadable one counts as missing, and is reported.
func (f *offsetFile) load() (corrupt error, err error) {
	o, err := checkpoint.ReadOffsets(f.fs, f.path)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		o, corrupt, err = checkpoint.Offsets{}, err, nil
	}
	f.onDisk, f.caps = o, checkpoint.Offsets{}
	return corrupt, err
}

// get is what the file says; 0 for a partition that it does not name.
func (f *offsetFile) get(tp TP) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.onDisk[checkpoint.Key(tp)]
}

// named lists the partitions in the file that want says yes to.
func (f *offsetFile) named(want func(TP) bool) []TP {
	f.mu.Lock()
	keys := slices.Collect(maps.Keys(f.onDisk))
	f.mu.Unlock()
	var tps []TP
	for _, k := range keys {
		if want(TP(k)) {
			tps = append(tps, TP(k))
		}
	}
	return tps
}

// write replaces the file by what gather returns, unless it says so already.
func (f *offsetFile) write(gather func() checkpoint.Offsets) error {
	f.round.Lock()
	defer f.round.Unlock()
	f.mu.Lock()
	f.lowered = checkpoint.Offsets{}
	f.mu.Unlock()
	next := gather()
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	bound(next, f.lowered)
	f.lowered = nil
	f.mu.Unlock()
	return f.replace(next)
}

// lower makes the file say at most offset of each of tps, durably, before it returns. Callers that come
// together share one write.
func (f *offsetFile) lower(offset int64, tps ...TP) error {
	f.mu.Lock()
	pending := false
	for _, tp := range tps {
		k := checkpoint.Key(tp)
		if f.lowered != nil {
			lowerTo(f.lowered, k, offset)
		}
		if f.onDisk[k] > offset {
			lowerTo(f.caps, k, offset)
			pending = true
		}
	}
	f.mu.Unlock()
	if !pending {
		return nil
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	next := maps.Clone(f.onDisk)
	bound(next, f.caps)
	f.mu.Unlock()
	return f.replace(next)
}

// replace is called with writing held; next becomes the file's.
func (f *offsetFile) replace(next checkpoint.Offsets) error {
	f.mu.Lock()
	bound(next, f.caps)
	applied := f.caps
	f.caps = checkpoint.Offsets{}
	same := maps.Equal(next, f.onDisk)
	f.mu.Unlock()
	if same {
		return nil
	}
	if err := atomicfile.Write(f.fs, f.path, checkpoint.FormatOffsets(next)); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		for k, o := range applied {
			lowerTo(f.caps, k, o)
		}
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onDisk = next
	return nil
}

// bound lowers o to caps; a partition bounded to 0 is not named at all.
func bound(o, caps checkpoint.Offsets) {
	for k, most := range caps {
		if o[k] > most {
			o[k] = most
		}
		if most == 0 {
			delete(o, k)
		}
	}
}

func lowerTo(caps checkpoint.Offsets, k checkpoint.Key, offset int64) {
	if have, ok := caps[k]; !ok || have > offset {
		caps[k] = offset
	}
}
