//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) && !portable && !nouring

package backend

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/uring"
)

// childEnv tells the test binary that it is a child which forbids itself something first.
const childEnv = "PLATTER_TEST_FORBID"

const (
	sysSetup    = 425 // io_uring_setup
	sysEnter    = 426
	sysRegister = 427
)

// forbids are the ways in which a process may be kept from io_uring.
var forbids = map[string]func() error{
	"seccomp setup EPERM":    func() error { return refuse(sysSetup, unix.EPERM) },
	"seccomp setup ENOSYS":   func() error { return refuse(sysSetup, unix.ENOSYS) },
	"seccomp enter EPERM":    func() error { return refuse(sysEnter, unix.EPERM) },
	"seccomp register EPERM": func() error { return refuse(sysRegister, unix.EPERM) },
	"no descriptors": func() error {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3})
	},
	"no locked memory": func() error {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{}); err != nil {
			return err
		}
		const nobody = 65534
		if os.Getuid() != 0 { // root may lock without limit
			return nil
		}
		return syscall.Setuid(nobody)
	},
}

// refuse has the kernel answer a system call with an error, for all threads of this process.
func refuse(nr uint32, errno unix.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if failed != 0 {
		return fmt.Errorf("seccomp: %w", failed)
	}
	return nil
}

// TestMain is also the child processes that the tests start.
func TestMain(m *testing.M) {
	dir := os.Getenv("PLATTER_TEST_DIR")
	switch {
	case os.Getenv(childEnv) != "":
		forbidden(os.Getenv(childEnv), dir)
	case os.Getenv(sameEnv) != "":
		if err := doAll(os.Getenv(sameEnv), dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// forbidden is the child that is kept from io_uring.
func forbidden(how, dir string) {
	if err := forbids[how](); err != nil {
		fmt.Println("cannot forbid:", err)
		return
	}
	fs, reason, err := Select("auto")
	fmt.Println("auto:", reason, err)
	if how != "no descriptors" {
		fmt.Println("work:", work(fs, dir))
	}
	fs, _, err = Select("uring")
	fmt.Println("uring:", fs != nil, err)
}

// work does what a ring would be good for.
func work(fs disk.FS, dir string) error {
	f, err := fs.Open(filepath.Join(dir, "f"), disk.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteV([][]byte{[]byte("0123"), []byte("456789")}, 0); err != nil {
		return err
	}
	reads := []disk.Read{{File: f, Buf: make([]byte, 5)}, {File: f, Buf: make([]byte, 5), Pos: 5}}
	fs.ReadBatch(reads, true)
	for i, want := range []string{"01234", "56789"} {
		if r := reads[i]; r.Err != nil || string(r.Buf) != want {
			return fmt.Errorf("read %q, %v", r.Buf, r.Err)
		}
	}
	return fs.Sync([]disk.File{f, f})
}

// TestRingForbidden: auto goes on without a ring, quietly and with the reason; who asked for uring is told.
func TestRingForbidden(t *testing.T) {
	if err := uring.Check(); err != nil {
		t.Skipf("SKIPPED kernels that forbid io_uring: this one does: %v", err)
	}
	for how, says := range map[string]string{
		"seccomp setup EPERM":    "forbidden",
		"seccomp setup ENOSYS":   "no io_uring",
		"seccomp enter EPERM":    "forbidden",
		"seccomp register EPERM": "forbidden",
		"no descriptors":         "no file descriptor left",
		"no locked memory":       "locked memory",
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			os.Chmod(dir, 0o777)
			os.Chmod(filepath.Dir(dir), 0o755)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+how, "PLATTER_TEST_DIR="+dir)
			out, err := cmd.CombinedOutput()
			if bytes.Contains(out, []byte("cannot forbid:")) {
				t.Skipf("SKIPPED %s: %s", how, out)
			}
			auto, uring := lineOf(out, "auto:"), lineOf(out, "uring:")
			if err != nil || auto == "" || uring == "" {
				t.Fatalf("%v\n%s", err, out)
			}
			if how == "no locked memory" && strings.HasPrefix(uring, "true <nil>") {
				t.Log("this kernel does not count rings as locked memory")
				says = "io_uring"
			} else if !strings.HasPrefix(uring, "false io.backend=uring:") || !strings.Contains(uring, says) {
				t.Errorf("uring: %s", uring)
			}
			if !strings.HasPrefix(auto, "auto: plain system calls") || !strings.HasSuffix(auto, "<nil>") || !strings.Contains(auto, says) {
				t.Errorf("auto: %s", auto)
			}
			if w := lineOf(out, "work:"); how != "no descriptors" && w != "<nil>" {
				t.Errorf("work without a ring: %s", w)
			}
		})
	}
}

func lineOf(out []byte, prefix string) string {
	for _, line := range strings.Split(string(out), "\n") {
		if rest, ok := strings.CutPrefix(line, prefix+" "); ok {
			return rest
		}
	}
	return ""
}
