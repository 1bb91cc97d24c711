package iobench

import (
	"bufio"
	"bytes"
	"strconv"

	"platter/io/disk"
	"platter/io/portable"
)

// ioCounts reads how many read and write calls this process has made (proc_pid_io(5)); it costs some itself.
func ioCounts() (reads, writes int64, ok bool) {
	p, err := readProc("/proc/self/io")
	if err != nil {
		return 0, 0, false
	}
	found := 0
	for s := bufio.NewScanner(bytes.NewReader(p)); s.Scan(); {
		name, value, _ := bytes.Cut(s.Bytes(), []byte(": "))
		n, err := strconv.ParseInt(string(value), 10, 64)
		switch {
		case err != nil:
		case string(name) == "syscr":
			reads, found = n, found+1
		case string(name) == "syscw":
			writes, found = n, found+1
		}
	}
	return reads, writes, found == 2
}

// readProc reads a file of /proc or /sys, whose sizes are not told beforehand.
func readProc(path string) ([]byte, error) {
	f, err := portable.New().Open(path, disk.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := make([]byte, 64<<10)
	n, err := f.ReadAt(p, 0)
	if n > 0 {
		err = nil
	}
	return p[:n], err
}
