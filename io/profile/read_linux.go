//go:build linux

package profile

import "os"

// Read tells what is under a path of this machine; it may be missing still, then what is under its nearest parent. A path
// on a disk that hangs may make it wait, as any look at it would.
func Read(path string) Profile {
	p := Of(os.DirFS("/"), resolve(path))
	p.Path = path
	return p
}
