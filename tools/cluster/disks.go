package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"platter/tools/proc"
)

// SmallDisk is a file system in memory, of the test's own, that can be filled up. It is gone when the test ends.
type SmallDisk struct {
	t   testing.TB
	Dir string
}

// NewSmallDisk mounts one. The error says why there can be none here.
func NewSmallDisk(t testing.TB, megabytes int) (*SmallDisk, error) {
	dir := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", megabytes), "tmpfs", dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("needs root to mount a small tmpfs: %w: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return &SmallDisk{t, dir}, nil
}

// Put makes it the disk of a broker that has not been started yet.
func (d *SmallDisk) Put(b *proc.Broker) { b.Props["log.dirs"] = filepath.Join(d.Dir, "data") }

func (d *SmallDisk) ballast() string { return filepath.Join(d.Dir, "ballast") }

// Fill takes all the room there is.
func (d *SmallDisk) Fill() {
	d.t.Helper()
	f, err := os.Create(d.ballast())
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if _, err = io.CopyBuffer(f, zeros{}, make([]byte, 1<<20)); !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("filling a small disk: %v", err)
	}
}

// Free gives the room back.
func (d *SmallDisk) Free() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
