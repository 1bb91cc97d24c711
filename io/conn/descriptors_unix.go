//go:build unix

package conn

import (
	"math"

	"golang.org/x/sys/unix"
)

// DescriptorLimit is how many descriptors this process may have; the Go runtime has raised the soft limit
// to the hard one already.
func DescriptorLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(uint64(r.Cur), math.MaxInt32))
}
