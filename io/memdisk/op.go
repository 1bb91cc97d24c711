package memdisk

import (
	"math/rand/v2"

	"platter/io/disk"
)

// Op is one operation that changes the disk or makes something durable. Reads are not counted.
type Op struct {
	N    int64  // from 1
	Kind string // create, write, truncate, preallocate, release, sync, syncdir, mkdir, rename, remove
	Path string
	To   string // of a rename
	Pos  int64  // of a write or preallocate; the size of a truncate
	Len  int64  // of a write or preallocate
}

// Count is the number of operations so far.
func (m *FS) Count() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// SetHook calls hook before each operation, on its goroutine, without a lock; nil is none. The
// operation fails with the error that hook returns, and has then not happened.
func (m *FS) SetHook(hook func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// CrashAt sets the crash point: operation n (counted as Op.N), and everything after it, reads too,
// fails with ErrCrashed, until Crash or Kill. Whether n itself still happened, wholly or (a write) in
// part, is drawn from seed.
func (m *FS) CrashAt(n int64, seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashAt, m.dice = n, seed
}

// Crashed reports whether the crash point was reached.
func (m *FS) Crashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// op runs one operation with the lock held, and makes its error the contract's.
func (m *FS) op(o Op, run func() error) error {
	_, err := m.opPart(o, func(int64) (int64, error) { return 0, run() })
	return err
}

// opPart is op for one that can happen in part: run is told how much of o.Len it may do.
func (m *FS) opPart(o Op, run func(most int64) (int64, error)) (int64, error) {
	n, pos, err := m.count1(o, run)
	what := o.Path
	if o.To != "" {
		what += " -> " + o.To
	}
	return n, disk.Fail(o.Kind, what, pos, err)
}

func (m *FS) count1(o Op, run func(most int64) (int64, error)) (n, pos int64, err error) {
	pos = -1
	if o.Kind == "write" || o.Kind == "truncate" || o.Kind == "preallocate" {
		pos = o.Pos
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return 0, pos, ErrCrashed
	}
	m.count++
	o.N = m.count
	if hook := m.hook; hook != nil {
		m.mu.Unlock()
		err := hook(o)
		m.mu.Lock()
		if err != nil {
			return 0, pos, err
		}
	}
	if m.crashAt != 0 && o.N >= m.crashAt {
		m.dead = true
		rng := rand.New(rand.NewPCG(m.dice, uint64(o.N)))
		switch rng.IntN(3) {
		case 0:
			run(o.Len)
		case 1:
			if o.Len > 0 {
				run(rng.Int64N(o.Len))
			}
		}
		return 0, pos, ErrCrashed
	}
	n, err = run(o.Len)
	return n, pos + n, err
}
