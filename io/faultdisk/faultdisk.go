// Package faultdisk puts faults into any disk.FS, by a script.
//
// A script is a rule a line; what follows a # is a comment:
//
//	write *.log after 3: ENOSPC         # the fourth and every later write to a .log file
//	sync *: EIO once                    # the first sync
//	read *.index p=0.1: bitflip         # every tenth read, by chance, has one wrong bit
//	write *.log: short 100              # 100 bytes are written, then disk.ErrShortWrite
//	write,truncate /data/d1/* : EROFS   # a directory; a * spans no /
//	send *.log in 4096-8192: torn 10 times 2
//	* : latency 5ms
//
// The grammar:
//
//	rule      = ops [pattern] {condition} ":" effect ["once" | "times" N]
//	ops       = "*" | op {"," op}
//	op        = open create read write send sync truncate preallocate close
//	            stat list mkdir rename remove syncdir lock space
//	pattern   = as path.Match has it; without a / of the base name alone, default *
//	condition = "after" N      let N matching operations pass first
//	          | "every" N      then only the first and each Nth after it
//	          | "in" FROM-[TO] only where it touches these bytes of the file (TO exclusive)
//	          | "p=" F         then with this probability
//	effect    = error          nothing is done: EIO ENOSPC EDQUOT EROFS EACCES EPERM ENOENT EEXIST
//	                           EMFILE ENFILE EAGAIN EINVAL EOF SHORT NOTSUP LOCKED
//	          | "short" N [error]   N bytes are done, then the error (SHORT for writes, EIO for others)
//	          | "torn" N       N bytes are done, but success is claimed (reads: the rest is zeros)
//	          | "lost"         nothing is done, but success is claimed
//	          | "bitflip" [N]  N wrong bits in what is read, sent or written (default 1)
//	          | "latency" D    it takes D longer
//	          | "hang"         it waits until the script is replaced
//
// short, torn and bitflip are for read, write and send; lost is for these and for sync, truncate,
// preallocate, mkdir, rename, remove and syncdir. With ops "*" they leave other operations alone.
//
// All rules that match count the operation. Latencies add up, and the first rule with another effect
// decides; those behind it do not use up their times. A rule for open also sees creating opens, as open; create sees those alone, after open.
// Renames match by either path.
//
// The injected errors match ErrInjected. Chance and bits are drawn from the seed.
package faultdisk

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"platter/io/clock"
	"platter/io/disk"
)

// ErrInjected is matched by every injected error, beside its cause.
var ErrInjected = errors.New("injected fault")

type injectedError struct{ cause error }

func (e injectedError) Error() string   { return "injected: " + e.cause.Error() }
func (e injectedError) Unwrap() []error { return []error{ErrInjected, e.cause} }

// logMax bounds what Fired remembers.
const logMax = 10_000

// FS implements disk.FS. Safe for concurrent use; with several goroutines their order decides whom a
// rule meets.
type FS struct {
	inner disk.FS
	clock clock.Clock

	mu    sync.Mutex
	rng   *rand.Rand
	rules []*rule
	fired []string
	freed chan struct{} // closed when the script is replaced
}

var _ disk.FS = (*FS)(nil)

// New returns inner without faults, until Script. clk is what latency waits on.
func New(inner disk.FS, seed uint64, clk clock.Clock) *FS {
	return &FS{inner: inner, clock: clk, rng: rand.New(rand.NewPCG(seed, 0)), freed: make(chan struct{})}
}

// Script replaces the rules; the counts begin anew, and what hangs goes on. A bad script is an error
// that says line and reason, and changes nothing.
func (f *FS) Script(script string) error {
	rules, err := parse(script)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
	close(f.freed)
	f.freed = make(chan struct{})
	return nil
}

// Fired tells what was injected so far, oldest first, a line each: operation, path, position, effect.
// At most the last 10,000.
func (f *FS) Fired() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.fired)
}

// fault is what happens to one operation; the zero value is nothing.
type fault struct {
	rule *rule
	seed uint64
}

// meet finds the fault of an operation on the bytes pos..pos+n (pos -1: no position) and sits the
// latencies out. err is not nil when nothing is to be done but to fail.
func (f *FS) meet(op string, pos, n int64, paths ...string) (fault, error) {
	f.mu.Lock()
	var ft fault
	var delays []*rule
	for _, r := range f.rules {
		if !r.matches(op, pos, n, paths) || !r.fires(f.rng) {
			continue
		}
		if r.action != latency && ft.rule != nil {
			continue // an earlier one has decided
		}
		r.fired++
		f.log(r, op, pos, paths)
		if r.action == latency {
			delays = append(delays, r)
		} else {
			ft = fault{r, f.rng.Uint64()}
		}
	}
	freed := f.freed
	f.mu.Unlock()
	for _, r := range delays {
		<-f.clock.After(r.delay)
	}
	if ft.rule == nil {
		return ft, nil
	}
	switch ft.rule.action {
	case hang:
		<-freed
		return fault{}, nil
	case fail:
		return ft, disk.Fail(op, strings.Join(paths, " -> "), pos, injectedError{ft.rule.err})
	}
	return ft, nil
}

func (f *FS) log(r *rule, op string, pos int64, paths []string) {
	if len(f.fired) == logMax {
		f.fired = slices.Delete(f.fired, 0, logMax/10)
	}
	line := op + " " + strings.Join(paths, " -> ")
	if pos >= 0 {
		line = fmt.Sprintf("%s at %d", line, pos)
	}
	_, effect, _ := strings.Cut(r.text, ":")
	f.fired = append(f.fired, line+":"+effect)
}

func (r *rule) matches(op string, pos, n int64, paths []string) bool {
	if r.ops != nil && !slices.Contains(r.ops, op) || !r.action.suits(op) {
		return false
	}
	if r.from > 0 || r.to < 1<<63-1 {
		if pos < 0 || pos+n <= r.from || pos >= r.to {
			return false
		}
	}
	return slices.ContainsFunc(paths, func(p string) bool {
		p = filepath.ToSlash(p)
		if !strings.Contains(r.pattern, "/") {
			p = path.Base(p)
		}
		ok, _ := path.Match(r.pattern, p)
		return ok
	})
}

// fires counts a match and says whether the rule's turn has come.
func (r *rule) fires(rng *rand.Rand) bool {
	r.matched++
	if r.matched <= r.after || (r.matched-r.after-1)%r.every != 0 {
		return false
	}
	if r.limit > 0 && r.fired >= r.limit {
		return false
	}
	return r.chance >= 1 || rng.Float64() < r.chance
}

// is reports whether the fault has this action.
func (ft fault) is(a action) bool { return ft.rule != nil && ft.rule.action == a }

// idle reports whether an operation without bytes claims success and does nothing.
func (ft fault) idle() bool { return ft.is(lost) || ft.is(torn) }

// flip puts the wrong bits in.
func (ft fault) flip(p []byte) {
	rng := rand.New(rand.NewPCG(ft.seed, 1))
	for range ft.rule.bytes {
		if len(p) > 0 {
			p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
		}
	}
}

// cut is what is done of n bytes.
func (ft fault) cut(n int64) int64 {
	switch {
	case ft.is(lost):
		return 0
	case ft.is(short), ft.is(torn):
		return min(n, ft.rule.bytes)
	}
	return n
}

// shortError is the error of a short operation.
func (ft fault) shortError(otherwise error) error {
	if ft.rule.err != nil {
		return injectedError{ft.rule.err}
	}
	return injectedError{otherwise}
}

// Name is that of the backend inside.
func (f *FS) Name() string { return f.inner.Name() }

// Caps are those of the backend inside.
func (f *FS) Caps(path string) disk.Caps { return f.inner.Caps(path) }

// Open opens path.
func (f *FS) Open(path string, m disk.Mode) (disk.File, error) {
	if _, err := f.meet("open", -1, 0, path); err != nil {
		return nil, err
	}
	if m == disk.Create || m == disk.CreateNew {
		if _, err := f.meet("create", -1, 0, path); err != nil {
			return nil, err
		}
	}
	inner, err := f.inner.Open(path, m)
	if err != nil {
		return nil, err
	}
	return &file{fs: f, inner: inner}, nil
}

// Stat describes one entry.
func (f *FS) Stat(path string) (disk.Info, error) {
	if _, err := f.meet("stat", -1, 0, path); err != nil {
		return disk.Info{}, err
	}
	return f.inner.Stat(path)
}

// ReadDir lists a directory.
func (f *FS) ReadDir(path string) ([]disk.Info, error) {
	if _, err := f.meet("list", -1, 0, path); err != nil {
		return nil, err
	}
	return f.inner.ReadDir(path)
}

// simple is an operation that is done or not.
func (f *FS) simple(op string, run func() error, paths ...string) error {
	ft, err := f.meet(op, -1, 0, paths...)
	if err != nil || ft.idle() {
		return err
	}
	return run()
}

// MkdirAll creates path and its missing parents.
func (f *FS) MkdirAll(path string) error {
	return f.simple("mkdir", func() error { return f.inner.MkdirAll(path) }, path)
}

// Rename moves an entry.
func (f *FS) Rename(from, to string) error {
	return f.simple("rename", func() error { return f.inner.Rename(from, to) }, from, to)
}

// Remove deletes a file or an empty directory.
func (f *FS) Remove(path string) error {
	return f.simple("remove", func() error { return f.inner.Remove(path) }, path)
}

// RemoveAll deletes a tree; the rules see one remove of its top.
func (f *FS) RemoveAll(path string) error {
	return f.simple("remove", func() error { return f.inner.RemoveAll(path) }, path)
}

// SyncDir makes the entries of the directory durable.
func (f *FS) SyncDir(path string) error {
	return f.simple("syncdir", func() error { return f.inner.SyncDir(path) }, path)
}

// Sync makes all files durable, one after the other, so that a script meets them in order.
func (f *FS) Sync(files []disk.File) error { return disk.SyncEach(files, 1) }

// ReadBatch meets the rules for read in the batch's order. The reads without a fault then leave as one
// batch of the backend inside.
func (f *FS) ReadBatch(reads []disk.Read, cold bool) {
	var inner []disk.Read
	var place []int // of each of inner in reads
	for i := range reads {
		r := &reads[i]
		own, ok := r.File.(*file)
		if !ok {
			r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos)
			continue
		}
		ft, err := f.meet("read", r.Pos, int64(len(r.Buf)), own.Path())
		switch {
		case err != nil:
			r.N, r.Err = 0, err
		case ft.rule != nil:
			r.N, r.Err = own.read(ft, r.Buf, r.Pos)
		default:
			inner = append(inner, disk.Read{File: own.inner, Buf: r.Buf, Pos: r.Pos})
			place = append(place, i)
		}
	}
	f.inner.ReadBatch(inner, cold)
	for i, r := range inner {
		reads[place[i]].N, reads[place[i]].Err = r.N, r.Err
	}
}

// Lock takes an exclusive lock on path.
func (f *FS) Lock(path string) (io.Closer, error) {
	if _, err := f.meet("lock", -1, 0, path); err != nil {
		return nil, err
	}
	return f.inner.Lock(path)
}

// Space tells the room of the file system that holds path.
func (f *FS) Space(path string) (disk.Space, error) {
	if _, err := f.meet("space", -1, 0, path); err != nil {
		return disk.Space{}, err
	}
	return f.inner.Space(path)
}
