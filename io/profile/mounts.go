package profile

import (
	"path"
	"strings"
)

// mount is one line of mountinfo.
type mount struct {
	device  string // "8:1"
	point   string
	fs      string
	source  string
	options string // of the file system
}

// mountsMax bounds the lines that are looked at.
const mountsMax = 100_000

// parseMounts reads mountinfo. Lines that are not as proc_pid_mountinfo(5) says are passed over:
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//	(1)(2)(3)  (4)   (5)   (6)        (7)  (8) (9) (10)     (11)
func parseMounts(text string) (mounts []mount) {
	for line := range strings.Lines(text) {
		if len(mounts) == mountsMax {
			break
		}
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		a, b := strings.Fields(before), strings.Fields(after)
		if !ok || len(a) < 6 || len(b) < 2 {
			continue
		}
		m := mount{device: a[2], point: unescape(a[4]), fs: b[0], source: unescape(b[1])}
		if len(b) > 2 {
			m.options = b[2]
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes the kernel's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// mountOf is the mount that a path is on: the one with the longest mount point, of several there the last, which
// hides the others.
func mountOf(mounts []mount, p string) (found mount, ok bool) {
	p = path.Clean(p)
	for _, m := range mounts {
		if (m.point == "/" || p == m.point || strings.HasPrefix(p, m.point+"/")) && len(m.point) >= len(found.point) {
			found, ok = m, true
		}
	}
	return found, ok
}

// option is the value of one of a mount's options.
func (m mount) option(name string) string {
	for o := range strings.SplitSeq(m.options, ",") {
		if v, ok := strings.CutPrefix(o, name+"="); ok {
			return unescape(v)
		}
	}
	return ""
}

// File systems without a block device of this machine.
var (
	memoryFileSystems  = []string{"tmpfs", "ramfs", "hugetlbfs"}
	networkFileSystems = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "fuse.glusterfs", "lustre", "gpfs", "beegfs",
		"ocfs2", "gfs2", "afs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.juicefs", "fuse.gcsfuse", "fuse.mount-s3"}
	hostFileSystems = []string{"9p", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse", "prl_fs"} // the host's own
)
