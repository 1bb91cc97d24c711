//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) && !portable && !nouring

package backend

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/uring"
)

// sameEnv tells the test binary that it is the child which does the operations under strace.
const sameEnv = "PLATTER_TEST_SAME"

// traced are the calls that operations are made of.
const traced = "pread64,preadv,preadv2,readv,pwrite64,pwritev,pwritev2,writev,fsync,fdatasync,syncfs,sync_file_range," +
	"sendfile,splice,sendto,fallocate,ftruncate,fadvise64,mincore,io_uring_enter,access,faccessat"

const (
	setCount = 8
	fileSize = 256 << 10
)

// scene is what the operations work on.
type scene struct {
	fs    disk.FS
	files []disk.File
	reads []disk.Read
	conn  *net.TCPConn
}

// acts does each operation of the table once.
var acts = map[string]func(s *scene) error{
	OpAppend: func(s *scene) error {
		_, err := s.files[0].WriteV([][]byte{make([]byte, 100), make([]byte, 5000)}, fileSize)
		return err
	},
	OpRead: func(s *scene) error { _, err := s.files[1].ReadAt(make([]byte, 5000), 100); return err },
	OpReadBatch: func(s *scene) error {
		s.fs.ReadBatch(s.reads, false)
		return s.reads[0].Err
	},
	OpReadCold: func(s *scene) error {
		s.fs.ReadBatch(s.reads, true)
		return s.reads[0].Err
	},
	OpSync:        func(s *scene) error { return s.files[2].Sync() },
	OpSyncSet:     func(s *scene) error { return s.fs.Sync(s.files) },
	OpSend:        func(s *scene) error { _, err := s.files[3].SendTo(s.conn, 0, 200<<10); return err },
	OpPreallocate: func(s *scene) error { return s.files[4].Preallocate(0, 1<<20) },
	OpWriteBehind: func(s *scene) error { return s.files[5].WriteBehind(0, fileSize) },
	OpAdvise:      func(s *scene) error { return s.files[6].Advise(0, fileSize, disk.DontNeed) },
	OpResident:    func(s *scene) error { _, err := s.files[7].Resident(0, fileSize); return err },
}

// doAll is the child that does every operation, with a mark in the trace before each.
func doAll(name, dir string) error {
	fs, _, err := Select(name)
	if err != nil {
		return err
	}
	s := &scene{fs: fs}
	for i := range setCount {
		f, err := fs.Open(filepath.Join(dir, fmt.Sprint(i)), disk.Create)
		if err != nil {
			return err
		}
		if _, err := f.WriteV([][]byte{make([]byte, fileSize)}, 0); err != nil {
			return err
		}
		s.files = append(s.files, f)
		s.reads = append(s.reads, disk.Read{File: f, Buf: make([]byte, 8192)})
	}
	if s.conn, err = drained(); err != nil {
		return err
	}
	for _, op := range slices.Sorted(maps.Keys(acts)) {
		_ = acts[op](s) // the first time also probes, and starts the ring
		mark(op)
		err := acts[op](s)
		mark("end")
		if err != nil && !errors.Is(err, disk.ErrUnsupported) {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// mark leaves a line in the trace.
func mark(what string) { unix.Access("/platter-mark/"+strings.ReplaceAll(what, " ", "-"), unix.F_OK) }

// drained is a connection whose peer reads all.
func drained() (*net.TCPConn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(io.Discard, c)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// trace runs the child over a backend, and returns the system calls of each operation with their counts.
func trace(t *testing.T, strace, name, dir string) map[string]map[string]int {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-o", out, "-e", "trace="+traced, os.Args[0])
	cmd.Env = append(os.Environ(), sameEnv+"="+name, "PLATTER_TEST_DIR="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(text), "ptrace") {
			t.Skipf("SKIPPED system calls of auto: strace cannot trace here: %s", text)
		}
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	calls, op := map[string]map[string]int{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if m := markLine.FindStringSubmatch(line); m != nil {
			op = strings.ReplaceAll(m[1], "-", " ")
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil || op == "" || op == "end" {
			continue
		}
		if calls[op] == nil {
			calls[op] = map[string]int{}
		}
		calls[op][m[1]]++
	}
	return calls
}

var (
	markLine = regexp.MustCompile(`/platter-mark/([a-z-]+)`)
	callLine = regexp.MustCompile(`^\d+ +([a-z0-9_]+)\(`) // the beginning of a call, not its end on a line of its own
)

// TestAutoIsWhatItChose: for each operation auto issues the system calls of the backend that it chose, no
// other and no more.
func TestAutoIsWhatItChose(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED system calls of auto: strace is not installed")
	}
	if err := uring.Check(); err != nil {
		t.Skipf("SKIPPED system calls of auto: uring cannot run: %v", err)
	}
	dir := t.TempDir()
	traces := map[string]map[string]map[string]int{}
	for _, name := range []string{"auto", "uring", "psync"} {
		traces[name] = trace(t, strace, name, dir)
	}
	fs, _, err := Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, fs)
	for _, c := range Explain(fs, []string{dir}) {
		if c.Backend == "none" {
			continue
		}
		got, want := traces["auto"][c.Op], traces[c.Backend][c.Op]
		t.Logf("%-16s %-6s %v", c.Op, c.Backend, got)
		if len(want) == 0 && c.Op != OpResident { // cachestat is unknown to older straces
			t.Errorf("%s: %s makes no system call", c.Op, c.Backend)
		}
		if c.Backend == "uring" || c.Op == OpSend { // how often depends on when things complete, and on the socket's room
			got, want = once(got), once(want)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: auto makes %v, %s makes %v", c.Op, got, c.Backend, want)
		}
	}
}

func once(calls map[string]int) map[string]int {
	o := map[string]int{}
	for c := range calls {
		o[c] = 1
	}
	return o
}

// TestAutoHandsNothingOver: a file of auto, where appends are psync's, is psync's own.
func TestAutoHandsNothingOver(t *testing.T) {
	dir := t.TempDir()
	types := map[string]reflect.Type{}
	for _, name := range []string{"auto", "psync"} {
		fs, _, err := Select(name)
		if err != nil {
			t.Fatal(err)
		}
		defer closeIt(t, fs)
		f, err := fs.Open(filepath.Join(dir, "f"), disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		types[name] = reflect.TypeOf(f)
	}
	if types["auto"] != types["psync"] {
		t.Errorf("auto opens a %v, psync a %v", types["auto"], types["psync"])
	}
}
