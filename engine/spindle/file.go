package spindle

import (
	"net"

	"platter/io/disk"
)

// file is an open .log file. Its own reads join a stream that is there; those of ForReaders make one.
type file struct {
	disk.File
	t      *tracked
	set    *Set
	closed bool
}

// readers is a file as those see it who read on and on.
type readers struct{ *file }

// ForReaders is f for what a reader is sent: cold ranges wait for their turn on the device. f may be any file; one that
// no Set has opened is returned as it is. It lives as long as f.
func ForReaders(f disk.File) disk.File {
	if w, ok := f.(*file); ok {
		return &w.readers
	}
	return f
}
