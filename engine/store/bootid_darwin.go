//go:build darwin

package store

import "golang.org/x/sys/unix"

// kernelBootID is the boot session's UUID (xnu's kern.bootsessionuuid).
func kernelBootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
