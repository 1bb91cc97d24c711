//go:build linux

package heap

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is one of the process's own, as /proc/self/smaps tells of it (proc_pid_smaps(5)).
type mapping struct {
	from, to uintptr
	perms    string
	file     string // device and inode; "00:00 0": none
	private  bool   // some of its pages are not the file's any more
}

// ForgetStart gives back the memory of the program's own code and constants: its start has touched far more of
// them than its work does. What is needed again comes back from the page cache. Only pages that are still the
// file's are given back. Where the system does not tell of mappings, nothing happens.
func ForgetStart() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	all := parseMaps(bufio.NewScanner(f))
	here := reflect.ValueOf(ForgetStart).Pointer()
	for _, own := range all {
		if own.from > here || here >= own.to {
			continue
		}
		for _, m := range all {
			if m.file == own.file && !m.private && !strings.Contains(m.perms, "w") {
				// A hint: a refusal costs memory, nothing else.
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
			}
		}
	}
}

func parseMaps(lines *bufio.Scanner) (all []mapping) {
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 2 {
			continue
		}
		if !strings.HasSuffix(f[0], ":") {
			m := mapping{perms: f[1]}
			if _, err := fmt.Sscanf(f[0], "%x-%x", &m.from, &m.to); err != nil || len(f) < 5 {
				return nil
			}
			m.file = f[3] + " " + f[4]
			all = append(all, m)
		} else if len(all) > 0 && f[0] == "Anonymous:" && f[1] != "0" {
			all[len(all)-1].private = true
		}
	}
	return all
}
