// Package handles keeps at most a fixed number of files open: a strict,
// reference-counted LRU. A partition's files are opened on use and closed when
// others need the room, so thousands of partitions run under a small descriptor
// limit. A file that is referenced is never closed.
package handles

import "platter/io/disk"

// Cache is safe for concurrent use.
type Cache struct{}

// Ref pins one open file until Release, which is called exactly once.
type Ref struct{}

// New returns a cache over fs that holds at most max open files.
func New(fs disk.FS, max int) *Cache { panic("stub") }

// Acquire opens path (or finds it open) and pins it. When all max files are pinned it waits for one
// to be released, and gives ErrTooManyOpen after a bounded wait.
func (c *Cache) Acquire(path string, m disk.Mode) (*Ref, error) { panic("stub") }

// Forget drops path: it is closed at once, or when its last Ref is released; the next Acquire opens
// anew. Called before a file is renamed or deleted.
func (c *Cache) Forget(path string) { panic("stub") }

// Close forgets every file.
func (c *Cache) Close() { panic("stub") }

// File is the pinned file, valid until Release.
func (r *Ref) File() disk.File { panic("stub") }

// Release unpins.
func (r *Ref) Release() { panic("stub") }
