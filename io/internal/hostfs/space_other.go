//go:build !linux && !darwin && !freebsd && !windows

package hostfs

import "platter/io/disk"

func space(string) (disk.Space, error) { return disk.Space{}, disk.ErrUnsupported }
