package spindle

import (
	"log/slog"
	"time"
)

const (
	// watchEvery is how often the dirty budget is looked at.
	watchEvery = 30 * time.Second
	// activeFor is how long after an append a file counts as growing: as long as the kernel keeps it dirty (dirty_expire_centisecs).
	activeFor = 30 * time.Second
)

// Watch looks at the kernel's budget for dirty pages now and then, until stop is closed, and says once for each device
// that it is too small for the files that grow there, and what to set. Where the kernel tells nothing, nothing is said.
func (s *Set) Watch(stop <-chan struct{}, log *slog.Logger) {
	for {
		select {
		case <-stop:
			return
		case <-s.clock.After(watchEvery):
			s.look(log)
		}
	}
}

// look judges each device's budget.
func (s *Set) look(log *slog.Logger) {
	budget, err := ReadDirtyBudget(s.FS)
	if err != nil {
		log.Debug("the kernel's dirty budget is unknown", "err", err)
		return
	}
	info, _ := readProc(s.FS, "/proc/meminfo") // no memory: advice is not bounded
	memory := memInfo(info, "MemTotal")
	active := s.active()
	for _, sp := range s.spindles {
		v := JudgeDirty(budget, active[sp], sp.p.DirtyRunBytes, memory)
		sp.verdict.Store(&judged{budget, v})
		if v.Short && !sp.warned.Swap(true) {
			log.Warn("the kernel may keep too little dirty for so many growing partitions; the disk will write in short runs",
				"device", sp.name, "partitions", active[sp], "run", inMiB(v.RunBytes), "wanted", inMiB(sp.p.DirtyRunBytes),
				"budget", inMiB(budget.BackgroundBytes), "remedy", v.Advice)
		}
	}
}

// judged is the last look at the budget.
type judged struct {
	budget  DirtyBudget
	verdict DirtyVerdict
}

// active counts the files that were appended to lately.
func (s *Set) active() map[*Spindle]int {
	n := map[*Spindle]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.files {
		if at := time.Duration(t.wroteAt.Load()); at > 0 && t.sp.now()-at < activeFor {
			n[t.sp]++
		}
	}
	return n
}
