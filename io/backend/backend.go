// Package backend picks the I/O backend by the setting io.backend.
package backend

import (
	"fmt"
	"strings"

	"platter/io/disk"
	"platter/io/portable"
)

// Names are the values that io.backend may have.
var Names = []string{"auto", "uring", "psync", "portable"}

// candidate is one backend of this build.
type candidate struct {
	name string
	open func() disk.FS
	why  string // why auto takes it
}

// Select returns the backend that name asks for, and why it is that one, for the start-up log and the
// metrics. "auto" and "" take the first that is built in. A backend that is not in this build, or that
// nobody knows, is an error that names those which are.
func Select(name string) (fs disk.FS, reason string, err error) {
	built := append(native(), candidate{"portable", func() disk.FS { return portable.New() },
		"no native backend in this build"})
	if name == "auto" || name == "" {
		return built[0].open(), "auto: " + built[0].why, nil
	}
	var have []string
	for _, c := range built {
		if c.name == name {
			return c.open(), "io.backend=" + name, nil
		}
		have = append(have, c.name)
	}
	for _, known := range Names {
		if name == known {
			return nil, "", fmt.Errorf("io.backend=%s: not in this build (has: auto, %s)", name, strings.Join(have, ", "))
		}
	}
	return nil, "", fmt.Errorf("io.backend=%q: unknown (one of %s)", name, strings.Join(Names, ", "))
}
