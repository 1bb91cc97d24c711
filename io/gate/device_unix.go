//go:build unix

package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// deviceOf names the device that path is, or will be, on.
func deviceOf(path string) string {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if fi, err := os.Stat(p); err == nil {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok {
				return fmt.Sprint(st.Dev)
			}
		}
		if filepath.Dir(p) == p {
			return path
		}
	}
}
