//go:build !unix

package gate

import "path/filepath"

// deviceOf is the drive.
func deviceOf(path string) string {
	if v := filepath.VolumeName(path); v != "" {
		return v
	}
	return path
}
