//go:build linux

package store

import (
	"platter/engine/checkpoint"
	"platter/io/disk"
	"platter/io/portable"
)

// kernelBootID is random(4)'s boot_id: constant from one boot to the next, the host's in a container.
func kernelBootID() string {
	f, err := portable.New().Open("/proc/sys/kernel/random/boot_id", disk.ReadOnly)
	if err != nil {
		return ""
	}
	defer f.Close()
	var p [64]byte
	n, _ := f.ReadAt(p[:], 0) // it ends before the buffer does, which is an error by contract
	return checkpoint.ParseBoot(p[:n])
}
