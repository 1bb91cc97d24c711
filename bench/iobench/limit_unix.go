//go:build unix

package iobench

import (
	"math"

	"golang.org/x/sys/unix"
)

// DescriptorLimit is how many descriptors this process may have.
func DescriptorLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(uint64(r.Cur), math.MaxInt32))
}
