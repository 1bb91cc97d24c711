// Package backend picks the I/O backend by the setting io.backend, and tells what was picked and why.
//
// A name takes that backend, for everything that it has. "auto" decides operation by operation, from what
// was probed of each file system and of this kernel, once and never from a benchmark at start: the rules
// are in Explain's table, and the measurements behind them in docs/figures.md. What auto gives to a
// backend is done by the very code, and the very system calls, of that backend.
package backend

import (
	"errors"
	"fmt"
	"strings"

	"platter/io/disk"
	"platter/io/portable"
)

// Names are the values that io.backend may have.
var Names = []string{"auto", "uring", "psync", "portable"}

// ErrNotBuilt: the backend is known, and not in this build.
var ErrNotBuilt = errors.New("not in this build")

// candidate is one backend of this build.
type candidate struct {
	name string
	open func() (disk.FS, error)
}

// candidates are the backends of this build, the best first.
func candidates() []candidate {
	return append(native(), candidate{"portable", func() (disk.FS, error) { return portable.New(), nil }})
}

// Built names the backends of this build, without auto.
func Built() (names []string) {
	for _, c := range candidates() {
		names = append(names, c.name)
	}
	return names
}

// Select returns the backend that name asks for, and why it is that one, for the start-up log and the
// metrics. "auto" and "" always find one. A backend that is not in this build (ErrNotBuilt), that nobody
// knows, or that this kernel forbids is an error that says so. Whoever is done with it closes it, where it
// is an io.Closer.
func Select(name string) (fs disk.FS, reason string, err error) {
	if name == "auto" || name == "" {
		fs, why := auto()
		return fs, "auto: " + why, nil
	}
	for _, c := range candidates() {
		if c.name != name {
			continue
		}
		if fs, err = c.open(); err != nil {
			return nil, "", fmt.Errorf("io.backend=%s: %w", name, err)
		}
		return fs, "io.backend=" + name, nil
	}
	for _, known := range Names {
		if name == known {
			return nil, "", fmt.Errorf("io.backend=%s: %w (has: auto, %s)", name, ErrNotBuilt, strings.Join(Built(), ", "))
		}
	}
	return nil, "", fmt.Errorf("io.backend=%q: unknown (one of %s)", name, strings.Join(Names, ", "))
}
