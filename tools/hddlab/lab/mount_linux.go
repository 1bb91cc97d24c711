package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// makeFS makes the file system: as its maker does by default for a disk, without discarding what is empty.
func makeFS(ctx context.Context, fs, device string) error {
	var cmd *exec.Cmd
	switch fs {
	case "xfs":
		cmd = exec.CommandContext(ctx, "mkfs.xfs", "-q", "-f", "-K", device)
	case "ext4":
		cmd = exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// unmount tries for so long while somebody uses the mount. force lets it go all the same: it is gone from the tree, and
// ends with its last user.
func unmount(dir string, tries time.Duration, force bool) error {
	limit := time.Now().Add(tries)
	for {
		err := unix.Unmount(dir, 0)
		switch {
		case err == nil, errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // it is no mount point, or is gone
			return nil
		case !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN):
			if force {
				return unix.Unmount(dir, unix.MNT_DETACH)
			}
			return fmt.Errorf("unmounting %s: %w", dir, err)
		case time.Now().Before(limit):
			time.Sleep(20 * time.Millisecond)
		case force:
			return unix.Unmount(dir, unix.MNT_DETACH)
		default:
			return fmt.Errorf("%s is in use%s: %w", dir, users(dir), err)
		}
	}
}

// users names processes that have a file below dir open, or stand in it.
func users(dir string) string {
	var found []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		links, _ := filepath.Glob(filepath.Join(p, "fd", "*"))
		for _, l := range append(links, filepath.Join(p, "cwd")) {
			if to, err := os.Readlink(l); err == nil && (to == dir || strings.HasPrefix(to, dir+"/")) {
				name, _ := os.ReadFile(filepath.Join(p, "comm"))
				found = append(found, fmt.Sprintf("%s (%s)", filepath.Base(p), strings.TrimSpace(string(name))))
				break
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " by " + strings.Join(found, ", ")
}

// labMounts lists the directories of all labs, alive or dead, by the FUSE mounts of this machine.
func labMounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var dirs []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		// proc_pid_mountinfo(5): … mount point (5th) … "-" type source options
		before, after, _ := strings.Cut(sc.Text(), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(kind) < 1 || kind[0] != "fuse."+fuseName {
			continue
		}
		dirs = append(dirs, filepath.Dir(unescape(at[4])))
	}
	return dirs, nil
}

// unescape undoes mountinfo's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// abort ends a FUSE connection that does not answer: whoever waits for it gets an error.
func abort(fuseDir string) error {
	const connections = "/sys/fs/fuse/connections"
	var st unix.Stat_t
	if err := unix.Stat(fuseDir, &st); err != nil {
		return err // it is aborted already, or gone
	}
	path := filepath.Join(connections, fmt.Sprint(unix.Minor(st.Dev)), "abort")
	if _, err := os.Stat(path); err != nil {
		if err := unix.Mount("fusectl", connections, "fusectl", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mounting fusectl: %w", err)
		}
	}
	return os.WriteFile(path, []byte("1"), 0)
}
