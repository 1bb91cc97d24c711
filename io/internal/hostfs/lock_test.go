//go:build unix

package hostfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"platter/io/disk"
)

// lockEnv names the file that a child of the test locks until it is killed.
const lockEnv = "PLATTER_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockEnv); path != "" {
		_, err := Paths{}.Lock(path)
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin) // until the parent kills us, or is gone
	}
	os.Exit(m.Run())
}

func TestLockDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockEnv+"="+path)
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "<nil>\n" {
		t.Fatalf("the child: %s", line)
	}
	if _, err := (Paths{}).Lock(path); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("while the child lives: %v", err)
	}
	child.Process.Kill()
	child.Wait()
	l, err := Paths{}.Lock(path)
	if err != nil {
		t.Fatalf("after its death: %v", err)
	}
	l.Close()
}
