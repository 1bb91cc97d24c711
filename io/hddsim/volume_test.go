package hddsim

import (
	"testing"
	"time"
)

func volume(change func(*VolumeParams)) *Volume {
	m := &Machine{}
	p := DefaultVolume()
	if change != nil {
		change(&p)
	}
	return NewVolume(m, hdd(m), p)
}

// at runs one actor over a volume.
func at(v *Volume, a Actor) time.Duration { return Run(v, time.Hour, 1, a) }

// A file that was written is in memory; what is dirty goes to the disk by itself once it is old.
func TestDirtyPagesExpire(t *testing.T) {
	v := volume(nil)
	at(v, func(p *Proc) {
		f := v.Create()
		p.Write(f, 0, 10<<20)
		if v.DirtyBytes() != 10<<20 || v.Resident(f, 0, 10<<20) != 10<<20 {
			t.Errorf("%d bytes are dirty, %d in memory", v.DirtyBytes(), v.Resident(f, 0, 10<<20))
		}
		p.Sleep(v.p.Expire - time.Second)
		if v.DirtyBytes() != 10<<20 {
			t.Errorf("%d bytes are dirty before their time", v.DirtyBytes())
		}
		p.Sleep(2 * v.p.Interval)
		if v.DirtyBytes() != 0 || f.Extents() != 1 || v.Resident(f, 0, 10<<20) != 10<<20 {
			t.Errorf("%d bytes are dirty, in %d pieces, %d in memory", v.DirtyBytes(), f.Extents(), v.Resident(f, 0, 10<<20))
		}
	})
}

// A writer that is faster than the disk goes at memory's speed until the budget is used up, then at the disk's.
func TestWritersAreHeldBack(t *testing.T) {
	v := volume(func(p *VolumeParams) { p.DirtyBytes, p.BackgroundBytes = 200<<20, 100<<20 })
	at(v, func(p *Proc) {
		f := v.Create()
		first := p.Write(f, 0, 150<<20)
		start, from := p.Now(), f.Size()
		for p.Now() < start+20*time.Second {
			p.Append(f, 1<<20)
			if v.DirtyBytes() > v.p.DirtyBytes {
				t.Fatalf("%d bytes are dirty", v.DirtyBytes())
			}
		}
		rate := mbPerSec(f.Size()-from, p.Now()-start)
		if first > 100*time.Millisecond || rate < 120 || rate > 152 {
			t.Errorf("150 MiB took %v, then %.0f MB/s", first, rate)
		}
	})
}

// The least used goes first when memory is full, and dirty pages do not go.
func TestEviction(t *testing.T) {
	v := volume(func(p *VolumeParams) { p.MemoryBytes, p.DirtyBytes, p.BackgroundBytes = 64<<20, 32<<20, 16<<20 })
	old, err := v.Place(40<<20, 0)
	must(t, err)
	big, err := v.Place(200<<20, 0)
	must(t, err)
	at(v, func(p *Proc) {
		dirty := v.Create()
		p.Write(dirty, 0, 8<<20)
		p.Read(old, &Reader{}, 0, 40<<20, ReadOptions{})
		var h Reader
		for pos := int64(0); pos < 200<<20; pos += 1 << 20 {
			p.Read(big, &h, pos, 1<<20, ReadOptions{})
			if v.ResidentBytes() > 64<<20 {
				t.Fatalf("%d bytes are in memory", v.ResidentBytes())
			}
		}
		if v.Resident(old, 0, 40<<20) != 0 || v.Resident(dirty, 0, 8<<20) != 8<<20 || v.Resident(big, 190<<20, 10<<20) != 10<<20 {
			t.Errorf("in memory: %d of the old, %d of the dirty, %d of the new", v.Resident(old, 0, 40<<20),
				v.Resident(dirty, 0, 8<<20), v.Resident(big, 190<<20, 10<<20))
		}
	})
}

// Reads that ask for it leave nothing behind, their readahead neither; what was there before stays.
func TestDontCache(t *testing.T) {
	v := volume(nil)
	f, err := v.Place(64<<20, 0)
	must(t, err)
	at(v, func(p *Proc) {
		p.Read(f, nil, 10<<20, 4096, ReadOptions{})
		var h Reader
		for pos := int64(0); pos < 64<<20; pos += 1 << 20 {
			p.Read(f, &h, pos, 1<<20, ReadOptions{DontCache: true})
		}
		if got := v.Resident(f, 0, 64<<20); got != 4096 {
			t.Errorf("%d bytes are in memory", got)
		}
		p.WillNeed(f, 20<<20, 4<<20)
		p.Sleep(time.Second)
		if got := v.Resident(f, 20<<20, 4<<20); got != 4<<20 {
			t.Errorf("of what will be needed %d bytes are in memory", got)
		}
		p.DontNeed(f, 20<<20+1, 4<<20)
		if got := v.Resident(f, 20<<20, 4<<20); got != 4096 {
			t.Errorf("a page that is needed in part has %d bytes", got)
		}
	})
}

// The first reads of a file open a window that grows, each time that its unread part is reached: 4, 8 and 16 pages. A look here
// and there opens none.
func TestReadaheadWindow(t *testing.T) {
	v := volume(nil)
	f, err := v.Place(64<<20, 0)
	must(t, err)
	at(v, func(p *Proc) {
		var h Reader
		for i, want := range []int64{16 << 10, 48 << 10, 48 << 10, 48 << 10, 112 << 10, 112 << 10} {
			p.Read(f, &h, int64(i)*4096, 4096, ReadOptions{})
			p.Sleep(50 * time.Millisecond)
			if got := v.Resident(f, 0, 1<<20); got != want {
				t.Errorf("after %d reads of a page %d KiB are in memory, want %d", i+1, got>>10, want>>10)
			}
		}
		before := v.ResidentBytes()
		var look Reader
		for _, pos := range []int64{40 << 20, 30 << 20, 50 << 20} {
			p.Read(f, &look, pos, 4096, ReadOptions{})
		}
		if got := v.ResidentBytes() - before; got != 3*4096 {
			t.Errorf("three looks brought %d bytes in", got)
		}
	})
}

// A sync of what has grown costs data, journal and commit block: at least a turn for the last, since the block before it
// has just passed. An overwrite in place costs the data alone.
func TestSyncCost(t *testing.T) {
	v := volume(nil)
	turn := time.Minute / 7200
	at(v, func(p *Proc) {
		f := v.Create()
		p.Write(f, 0, 1<<20)
		p.Sync(f)
		var grown, inPlace time.Duration
		const n = 50
		for range n {
			p.Append(f, 4096)
			grown += p.Sync(f) / n
		}
		for range n {
			p.Write(f, p.Rand.Int64N(256)*4096, 4096)
			inPlace += p.Sync(f) / n
		}
		t.Logf("a sync after an append takes %v, after an overwrite %v; a turn is %v", grown, inPlace, turn)
		if grown < 2*turn || grown > 8*turn || inPlace < turn/3 || inPlace > 2*turn {
			t.Errorf("a turn is %v", turn)
		}
	})
}

// Syncs that come at once share the journal's commit.
func TestSyncsShareACommit(t *testing.T) {
	rate := func(writers int) float64 {
		v := volume(nil)
		done := 0
		var actors []Actor
		for range writers {
			actors = append(actors, func(p *Proc) {
				f := v.Create()
				for {
					p.Append(f, 4096)
					p.Sync(f)
					done++
				}
			})
		}
		Run(v, 20*time.Second, 1, actors...)
		return float64(done) / 20
	}
	one, sixteen := rate(1), rate(16)
	t.Logf("syncs a second: one writer %.0f, sixteen %.0f", one, sixteen)
	if sixteen < 2.5*one {
		t.Errorf("sixteen writers get %.0f syncs a second, one %.0f", sixteen, one)
	}
}

// Deleting reads the maps of what it frees, one after the other, and gives the room back; the pages go at once.
func TestRemove(t *testing.T) {
	v := volume(nil)
	room := v.FreeBytes()
	old, err := v.Place(4<<30, 0)
	must(t, err)
	at(v, func(p *Proc) {
		fresh := v.Create()
		p.Write(fresh, 0, 256<<20)
		quick := p.Remove(fresh)
		slow := p.Remove(old)
		t.Logf("deleting 256 MiB that were never written takes %v, 4 GiB of old data %v", quick, slow)
		if quick > 20*time.Millisecond || slow < 32*2*time.Millisecond || slow > 32*20*time.Millisecond {
			t.Errorf("%v, %v", quick, slow)
		}
		if v.FreeBytes() != room || v.ResidentBytes() != 0 || v.DirtyBytes() != 0 {
			t.Errorf("%d of %d bytes are free, %d in memory, %d dirty", v.FreeBytes(), room, v.ResidentBytes(), v.DirtyBytes())
		}
	})
}

// Whatever actors do, in the end every page is accounted for, and the same seed gives the same time.
func TestVolumeMixture(t *testing.T) {
	run := func(seed uint64) (time.Duration, Stats) {
		v := volume(func(p *VolumeParams) { p.MemoryBytes, p.DirtyBytes, p.BackgroundBytes = 48<<20, 24<<20, 8<<20 })
		var actors []Actor
		for range 6 {
			actors = append(actors, func(p *Proc) { mixture(t, p) })
		}
		took := Run(v, time.Hour, seed, actors...)
		v.m.Run()
		if v.DirtyBytes() != 0 || v.cache.writing != 0 || v.flush.flying != 0 || v.ResidentBytes() > 48<<20 {
			t.Errorf("seed %d: at the end %d bytes are dirty, %d on their way, %d in memory", seed, v.DirtyBytes(), v.cache.writing, v.ResidentBytes())
		}
		var resident int64
		for b := v.cache.oldest; b != nil; b = b.newer {
			resident += bits(b.resident)
		}
		if resident != v.cache.resident {
			t.Errorf("seed %d: %d pages are in memory, %d are counted", seed, resident, v.cache.resident)
		}
		return took, v.Device().Stats()
	}
	for seed := range uint64(10) {
		a, s := run(seed)
		if b, u := run(seed); a != b || s != u {
			t.Errorf("seed %d: %v and %v, %+v and %+v", seed, a, b, s, u)
		}
	}
}

func mixture(t *testing.T, p *Proc) {
	v, rng := p.Volume(), p.Rand
	f := v.Create()
	var h Reader
	for range 150 {
		pos := rng.Int64N(f.Size() + 1)
		switch rng.IntN(14) {
		case 0:
			p.Sync(f)
		case 1:
			p.wait(func(done func()) { v.Truncate(f, pos, done) })
		case 2:
			p.Remove(f)
			f, h = v.Create(), Reader{}
		case 3:
			must(t, p.Preallocate(f, pos, rng.Int64N(4<<20)+1))
		case 4:
			p.wait(func(done func()) { v.ReleaseTail(f, done) })
		case 5:
			p.WriteBehind(f, 0, f.Size())
		case 6:
			p.DontNeed(f, pos, rng.Int64N(1<<20))
		case 7:
			p.WillNeed(f, pos, min(rng.Int64N(1<<20), f.Size()-pos))
		case 8, 9:
			p.Read(f, &h, pos, rng.Int64N(2<<20), ReadOptions{DontCache: rng.IntN(2) == 0})
		case 10:
			p.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
		default:
			p.Write(f, pos, 1+rng.Int64N(3<<20))
		}
	}
}
