// Package keyed is a lock for each key, made when it is taken and gone when nobody holds or awaits it.
//
// A fixed number of locks, shared by hash, would do where they are held for moments. Over a disk that may hang
// it must be one each, or keys on other disks wait too.
package keyed

import "sync"

// Locks is safe for concurrent use. The zero value is ready.
type Locks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Lock returns with the key's lock held, and how to release it, once.
func (l *Locks[K]) Lock(key K) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[K]*lock{}
	}
	one := l.locks[key]
	if one == nil {
		one = &lock{}
		l.locks[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.locks, key)
		}
	}
}
