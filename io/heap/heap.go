// Package heap keeps the memory of a process that is mostly small and sometimes not near what it uses.
//
// The collector's default doubles whatever lives: collections without end for a heap of a megabyte, and
// too much on top of one of a hundred. Keep gives a small heap some room and a large one half of itself;
// and what a busy time has left behind goes back to the system once it is quiet, which the runtime by itself
// does minutes later.
//
// It is for a process's main, which calls it once; the settings are the whole process's. An operator's
// own GOGC or GOMEMLIMIT stands.
package heap

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// roomBytes is what a small heap may gather between two collections; percentMax keeps the runtime's own
	// least heap (4 MiB for 100 percent) at that, too.
	roomBytes  = 16 << 20
	percentMax = 400
	percentMin = 50
	// lookEvery is how often there is a look, idleBytes of garbage and free memory make one act.
	lookEvery = 500 * time.Millisecond
	idleBytes = 16 << 20
)

// sizes are what the runtime says of itself.
type sizes struct {
	live   uint64 // at the end of the last collection
	held   uint64 // of the system's memory
	allocs uint64 // bytes allocated so far
}

var names = [...]string{
	"/gc/heap/live:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes",
	"/gc/heap/allocs:bytes",
}

func read() sizes {
	var s [len(names)]metrics.Sample
	for i, name := range names {
		s[i].Name = name
	}
	metrics.Read(s[:])
	v := func(i int) uint64 { return s[i].Value.Uint64() }
	return sizes{live: v(0), held: v(1) - v(2), allocs: v(3)}
}

// percent is GOGC for a heap of which live bytes live.
func percent(live uint64) int {
	if live == 0 {
		return percentMax
	}
	return int(min(max(roomBytes*100/live, percentMin), percentMax))
}

// keeper looks at the heap now and then.
type keeper struct {
	percent int
	last    sizes
	freed   bool // since there was last something to do
}

// look decides: the collector's percentage, and whether to give memory back.
func (k *keeper) look(now sizes) (percentage int, free bool) {
	quiet := now.allocs-k.last.allocs < roomBytes/16
	if !quiet {
		k.freed = false
	}
	k.last = now
	if free = quiet && !k.freed && now.held > now.live+idleBytes; free {
		k.freed = true // once: giving back is a collection too, and what it leaves is needed or in the way
	}
	return percent(now.live), free
}

// Keep starts to look after the heap, until the process ends.
func Keep() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	go func() {
		k := keeper{}
		for ; ; time.Sleep(lookEvery) {
			p, free := k.look(read())
			if d := p - k.percent; d > k.percent/8 || d < -k.percent/8 {
				debug.SetGCPercent(p)
				k.percent = p
			}
			if free {
				debug.FreeOSMemory()
			}
		}
	}()
}
