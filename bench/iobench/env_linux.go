package iobench

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}

// device names the block device under dir: its number, name, model where it has one, and whether it spins
// as far as the kernel knows. A virtual disk may say what it likes.
func device(dir string) string {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return "unknown"
	}
	major, minor := unix.Major(st.Dev), unix.Minor(st.Dev)
	sys := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	name := fmt.Sprintf("device %d:%d", major, minor)
	event, err := readProc(sys + "/uevent")
	if err != nil {
		return name + " (no block device)"
	}
	for line := range bytes.Lines(event) {
		if v, ok := bytes.CutPrefix(line, []byte("DEVNAME=")); ok {
			name = "/dev/" + strings.TrimSpace(string(v))
		}
	}
	look := func(what string) string {
		for _, at := range []string{sys + "/", sys + "/../"} { // of a partition, the disk's
			if p, err := readProc(at + what); err == nil {
				return strings.TrimSpace(string(p))
			}
		}
		return ""
	}
	if model := look("device/model"); model != "" {
		name += " (" + model + ")"
	}
	switch look("queue/rotational") {
	case "1":
		name += ", said to spin"
	case "0":
		name += ", said not to spin"
	}
	return name
}
