package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"platter/engine/commitlog"
	"platter/engine/spindle"
)

// incarnation is what the model knows of one log of one topic id.
type incarnation struct {
	id      byte
	written int64 // acknowledged
	durable int64 // acknowledged by a sync
	tried   int64 // the most that any sync may have reached
	start   int64 // where it was trimmed to
	mark    int64 // the highest high watermark that was checkpointed
}

// model is what the store has promised: for each name the log that is there, and those before it which were deleted
// and may come back with a power cut as long as they are not removed.
type model struct {
	now  map[TP]*incarnation
	gone map[TP][]*incarnation
	ids  byte // used so far; a history has fewer than 256
}

func newModel() *model {
	return &model{now: map[TP]*incarnation{}, gone: map[TP][]*incarnation{}}
}

// TestCrash runs seeded histories, each of them cut off at a random I/O by a power cut or by the death of
// the process, and compares what the next start finds with the model.
func TestCrash(t *testing.T) {
	seeds := uint64(1500)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		if err := crashHistory(newRig(t), seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func crashHistory(r *rig, seed uint64) error {
	r.c.serial = true
	if seed%2 == 1 { // files are cut before they are removed
		r.care = &spindle.Params{Cold: true, CutBytes: 300}
	}
	m := newModel()
	rng := rand.New(rand.NewPCG(seed, 7))
	r.open()
	for range 3 {
		r.disk.CrashAt(r.disk.Count()+1+rng.Int64N(120), rng.Uint64())
		var doubt *incarnation
		var doubtAt TP
		for !r.disk.Crashed() {
			doubtAt, doubt = r.step(m, rng)
		}
		power := rng.IntN(3) > 0
		if power {
			r.disk.Crash(rng.Uint64())
			r.boot++
		} else {
			r.disk.Kill()
		}
		clear(r.marks) // replicas start anew
		if err := r.tryOpen(); err != nil {
			return fmt.Errorf("the next start fails: %w", err)
		}
		if err := m.compare(r, power, doubtAt, doubt); err != nil {
			return err
		}
	}
	return nil
}

var crashNames = []TP{{"web", 0}, {"web", 1}, {"access.log", 12}}

// step does one operation. What was under way when the disk died comes back: it may have happened or not.
func (r *rig) step(m *model, rng *rand.Rand) (TP, *incarnation) {
	p := crashNames[rng.IntN(len(crashNames))]
	inc := m.now[p]
	defer r.s.work.wait()
	if inc == nil {
		return p, r.stepCreate(m, p)
	}
	l := r.s.Get(p)
	switch rng.IntN(12) {
	case 0:
		r.stepDelete(m, p)
	case 1: // recreated at once
		return p, r.stepCreate(m, p)
	case 2, 3, 4, 5:
		n := int64(1 + rng.IntN(3))
		if l != nil && appendTo(l, int(n)) == nil {
			inc.written += n
		}
	case 6:
		inc.tried = inc.written
		if l != nil && l.Sync() == nil {
			inc.durable = inc.written
		}
	case 7:
		inc.tried = inc.written
		if l != nil {
			l.Roll()
		}
	case 8:
		r.mu.Lock()
		r.marks[p] = inc.written
		r.mu.Unlock()
		inc.mark = max(inc.mark, inc.written)
		r.s.Checkpoint()
	case 9:
		if at := inc.start + rng.Int64N(inc.written-inc.start+1); l != nil {
			inc.start = at
			l.TrimTo(at)
		}
	case 10:
		r.clock.Advance(time.Minute)
		r.s.RemoveDeleted(r.clock.NowMs())
	case 11:
		for _, i := range m.now {
			i.tried = i.written
		}
		if r.s.Close(rng.IntN(4) > 0) == nil && !r.disk.Crashed() {
			r.tryOpen() // fails when the disk dies meanwhile
		}
	}
	return p, nil
}

func (r *rig) stepCreate(m *model, p TP) *incarnation {
	m.ids++
	inc := &incarnation{id: m.ids}
	if old := m.now[p]; old != nil {
		m.gone[p] = append(m.gone[p], old)
	}
	m.now[p] = inc
	r.mu.Lock()
	delete(r.marks, p)
	r.mu.Unlock()
	if _, err := r.s.Create(p, UUID{inc.id}, commitlog.DefaultConfig()); err != nil {
		return inc
	}
	return nil
}

func (r *rig) stepDelete(m *model, p TP) {
	m.gone[p] = append(m.gone[p], m.now[p])
	delete(m.now, p)
	r.mu.Lock()
	delete(r.marks, p)
	r.mu.Unlock()
	r.s.Delete(p)
}

// compare checks what a start has found, and takes it over into the model.
func (m *model) compare(r *rig, power bool, doubtAt TP, doubt *incarnation) error {
	for _, p := range crashNames {
		found, err := m.identify(r, p, power, doubt != nil && p == doubtAt)
		if err != nil {
			return fmt.Errorf("%s (power cut: %t): %w", p, power, err)
		}
		if power { // else a power cut may still bring them back
			delete(m.gone, p)
		}
		m.gone[p] = slices.DeleteFunc(m.gone[p], func(inc *incarnation) bool { return inc == found })
		if found == nil {
			delete(m.now, p)
			continue
		}
		l := r.s.Get(p)
		e := l.Ends()
		m.now[p] = &incarnation{id: r.s.TopicID(p)[0], written: e.Written, durable: e.Durable, tried: e.Durable, start: e.Start,
			mark: found.mark}
		if e.Durable <= e.Start { // no record is
			m.now[p].durable = 0
		}
		if m.now[p].id == 0 { // nothing was promised of it; the controller tells its id
			if _, err := r.s.Create(p, UUID{found.id}, commitlog.DefaultConfig()); err != nil {
				return err
			}
			m.now[p].id = found.id
		}
	}
	return nil
}

// identify finds which incarnation of p is there, and whether it may be. nil: none is.
func (m *model) identify(r *rig, p TP, power, doubtful bool) (*incarnation, error) {
	now := m.now[p]
	l := r.s.Get(p)
	if l == nil {
		if now != nil && !doubtful && (now.durable > 0 || !power) {
			return nil, fmt.Errorf("is gone, %+v was promised", *now)
		}
		return nil, nil
	}
	id, e := r.s.TopicID(p)[0], l.Ends()
	for _, inc := range append([]*incarnation{now}, m.gone[p]...) {
		if inc == nil || id != inc.id && id != 0 {
			continue
		}
		if inc != now && now != nil && !doubtful && (now.durable > 0 || !power) {
			return nil, fmt.Errorf("is the former %+v, %+v was promised", *inc, *now)
		}
		if id == 0 && inc.durable > 0 {
			continue // its id was durable with its records
		}
		marked := inc.mark
		if inc != now && now != nil { // a deleted log came back: it will be deleted again, whatever its high watermark
			marked = max(marked, now.mark)
		}
		if err := inc.check(e, r.s.HighWatermarkCheckpoint(p), marked, power); err != nil {
			return nil, err
		}
		return inc, nil
	}
	return nil, fmt.Errorf("has id %d, and ends %+v; %+v was promised", id, e, now)
}

func (inc *incarnation) check(e commitlog.Ends, mark, marked int64, power bool) error {
	switch {
	case e.Written < inc.durable:
		return fmt.Errorf("ends at %d, %+v was promised", e.Written, *inc)
	case !power && e.Written < inc.written:
		return fmt.Errorf("ends at %d after the death of the process, %+v was promised", e.Written, *inc)
	case e.Durable > inc.tried && e.Durable > max(inc.start, e.Start):
		return fmt.Errorf("claims to be durable up to %d; %+v", e.Durable, *inc)
	case e.Start > inc.start && (inc.durable > inc.start || e.Start > inc.written):
		// Without a durable record a later segment's file may be all that is left.
		return fmt.Errorf("starts at %d; %+v", e.Start, *inc)
	case mark > marked:
		return fmt.Errorf("has the high watermark %d; %+v", mark, *inc)
	}
	return nil
}
