//go:build windows

package hostfs

import (
	"golang.org/x/sys/windows"

	"platter/io/disk"
)

func space(path string) (disk.Space, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return disk.Space{}, err
	}
	var free, total, totalFree uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, &totalFree); err != nil {
		return disk.Space{}, err
	}
	return disk.Space{TotalBytes: int64(total), FreeBytes: int64(free)}, nil
}
