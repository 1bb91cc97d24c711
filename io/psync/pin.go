//go:build linux && !portable

package psync

import "platter/io/disk"

// own is this package's file in f: f itself, or what a backend above has wrapped (Unwrap).
func own(f disk.File) (*file, bool) {
	if w, ok := f.(interface{ Unwrap() disk.File }); ok {
		f = w.Unwrap()
	}
	o, ok := f.(*file)
	return o, ok
}

// Device tells which device a file is on, as stat(2) numbers it. ok is false for a file that this package
// did not open.
func Device(f disk.File) (dev uint64, ok bool) {
	if o, ok := own(f); ok {
		return o.dev, true
	}
	return 0, false
}

// Pin keeps the descriptor of a file open until Unpin, for somebody who works on it in another way.
// disk.ErrClosed (bare) after Close. f is a file of this package.
func Pin(f disk.File) (fd int, err error) {
	o, _ := own(f)
	return o.fd, o.pins.Enter()
}

// Unpin ends a Pin that gave no error.
func Unpin(f disk.File) {
	o, _ := own(f)
	o.leave()
}
