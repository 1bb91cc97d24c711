// Package labtest sets disk labs up for tests.
package labtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"platter/tools/hddlab/lab"
)

var binary struct {
	sync.Mutex
	path string
}

// build builds the daemon once a test process.
func build(t testing.TB) string {
	t.Helper()
	binary.Lock()
	defer binary.Unlock()
	if binary.path != "" {
		return binary.path
	}
	dir, err := os.MkdirTemp("", "platter-hddlab-")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "hddlab")
	cmd := exec.Command("go", "build", "-o", exe, "platter/tools/hddlab")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	binary.path = exe
	return exe
}

// Cleanup removes what New built; call it at the end of TestMain.
func Cleanup() {
	binary.Lock()
	defer binary.Unlock()
	if binary.path != "" {
		_ = os.RemoveAll(filepath.Dir(binary.path))
		binary.path = ""
	}
}

// New sets a lab up for a test, in a directory of its own unless c names one, and takes it down when the
// test ends. Where there can be none the test is skipped, with the reason.
func New(t testing.TB, c lab.Config) *lab.Lab {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "lab")
	}
	if err := c.Defaults(); err != nil {
		t.Fatal(err)
	}
	if err := lab.Check(c.FS); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, build(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(true); err != nil {
			t.Errorf("taking the lab down: %v", err)
		}
	})
	return l
}
