package labtest

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"platter/tools/hddlab/lab"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	proc.RunRole(map[string]func([]byte) error{"owner": ownLab})
	code := m.Run()
	Cleanup()
	os.Exit(code)
}

const smallBytes = 400 << 20

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// left tells what is mounted or attached below dir.
func left(t *testing.T, dir string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, line := range strings.Split(string(mounts), "\n") {
		if strings.Contains(line, dir) {
			found += line + "\n"
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, l := range loops {
		if b, _ := os.ReadFile(l); strings.Contains(string(b), dir) {
			found += l + ": " + string(b)
		}
	}
	return found
}

func stats(t *testing.T, l *lab.Lab) lab.Stats {
	t.Helper()
	s, err := l.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBytesComeBack: what was written is read from the disk again, takes the disk some time, and nothing stays behind.
func TestBytesComeBack(t *testing.T) {
	for _, c := range []lab.Config{{FS: "xfs"}, {FS: "ext4"}, {FS: "ext4", Buffered: true, Backing: "here", WriteCacheBytes: 8 << 20}} {
		name := c.FS
		if c.Buffered {
			name += ", buffered"
		}
		t.Run(name, func(t *testing.T) {
			c.SizeBytes = smallBytes
			if c.Backing != "" {
				c.Backing = t.TempDir()
			}
			l := New(t, c)
			before := stats(t, l)
			path := filepath.Join(l.Mount, "f")
			data := make([]byte, 3<<20)
			rng := rand.NewChaCha8([32]byte{1})
			_, _ = rng.Read(data)
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
			f.Close()
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes came back, %v", len(got), err)
			}
			did := stats(t, l).Sub(before)
			if did.WriteBytes < int64(len(data)) || !c.Buffered && did.ReadBytes < int64(len(data)) || did.Seeks == 0 || did.Busy <= 0 {
				t.Errorf("the disk says: %v", did)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := l.Down(false); err != nil {
				t.Fatal(err)
			}
			if s := left(t, l.Dir); s != "" {
				t.Errorf("left behind:\n%s", s)
			}
			if _, err := os.Stat(l.Dir); !os.IsNotExist(err) {
				t.Errorf("the directory is still there: %v", err)
			}
		})
	}
}

// TestStopped: a stopped disk answers nothing, and goes on when it may.
func TestStopped(t *testing.T) {
	l := New(t, lab.Config{SizeBytes: smallBytes})
	f, err := os.Create(filepath.Join(l.Mount, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Sync() }()
	eventually(t, "a request waits", func() bool { s := stats(t, l); return s.Stopped && s.Waiting > 0 })
	select {
	case err := <-done:
		t.Errorf("a stopped disk has synced: %v", err)
	default:
	}
	if err := l.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestInUse: a lab whose file system is in use says by whom, and goes on; by force it goes, and is gone.
func TestInUse(t *testing.T) {
	l := New(t, lab.Config{SizeBytes: smallBytes})
	f, err := os.Create(filepath.Join(l.Mount, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := l.Down(false); err == nil || !strings.Contains(err.Error(), "in use by") {
		t.Errorf("taken down while in use: %v", err)
	}
	if _, err := f.Write([]byte("on")); err != nil {
		t.Error(err)
	}
	if err := l.Down(true); err != nil {
		t.Error(err)
	}
	f.Close()
	eventually(t, "nothing is left", func() bool { return left(t, l.Dir) == "" })
}

// TestDeadDaemon: what a killed daemon leaves, the next start removes.
func TestDeadDaemon(t *testing.T) {
	l := New(t, lab.Config{SizeBytes: smallBytes})
	if err := os.WriteFile(filepath.Join(l.Mount, "f"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	kill(t, daemonOf(t, l.Dir))
	if left(t, l.Dir) == "" {
		t.Error("a killed daemon has left nothing: this test tests nothing")
	}
	if err := lab.Sweep(); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is left", func() bool { return left(t, l.Dir) == "" })
}

// TestDeadOwner: a lab ends with the process that started it, though it was killed, and though the disk is stopped.
func TestDeadOwner(t *testing.T) {
	if err := lab.Check("xfs"); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	owner := proc.StartChild(t, "owner", []string{build(t), dir})
	if line := <-owner.Lines; line != "up" {
		t.Fatalf("the owner says %q", line)
	}
	daemon := daemonOf(t, dir)
	owner.Signal(syscall.SIGKILL)
	eventually(t, "nothing is left", func() bool { return left(t, dir) == "" })
	eventually(t, "the daemon has ended", func() bool { return unix.Kill(daemon, 0) != nil })
}

// ownLab is the owner that TestDeadOwner kills.
func ownLab(args []byte) error {
	var a []string
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	l, err := lab.Start(context.Background(), a[0], lab.Config{Dir: a[1], SizeBytes: smallBytes})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.Mount, "f"), make([]byte, 1<<20), 0o644); err != nil {
		return err
	}
	if err := l.Stop(); err != nil {
		return err
	}
	os.Stdout.WriteString("up\n")
	select {}
}

func daemonOf(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Daemon struct{ ID int } }
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s.Daemon.ID
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is dead", func() bool {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}
