package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// state is what DIR/state.json says: enough to take the lab down without its daemon.
type state struct {
	Config Config
	Daemon process
	Owner  process // zero: nobody's
	Loop   int     // its number; -1: none
	Node   string  // path of its device
}

// process is told from a later one with the same id by its start.
type process struct {
	ID    int
	Start string // clock ticks since boot
}

func processOf(pid int) process { return process{pid, startOf(pid)} }

// startOf is the 22nd field of proc_pid_stat(5); "" when there is no such process.
func startOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	after := string(b[strings.LastIndexByte(string(b), ')')+1:])
	if fields := strings.Fields(after); len(fields) > 19 && fields[0] != "Z" {
		return fields[19]
	}
	return ""
}

func (p process) alive() bool { return p.ID > 0 && p.Start != "" && startOf(p.ID) == p.Start }

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

func (s *state) write() error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := statePath(s.Config.Dir) + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, statePath(s.Config.Dir))
}

// readState gives nil for a directory without a lab.
func readState(dir string) (*state, error) {
	b, err := os.ReadFile(statePath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &state{Loop: -1}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", statePath(dir), err)
	}
	if s.Config.Dir != dir {
		return nil, fmt.Errorf("%s is another lab's: it says %s", statePath(dir), s.Config.Dir)
	}
	return s, nil
}

// Sweep takes down every lab on this machine whose daemon has died, and ends those whose owner has. What could not
// be removed is told in the error.
func Sweep() error {
	dirs, err := labMounts()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		s, err := readState(dir)
		switch {
		case err != nil:
			errs = append(errs, err)
		case s == nil, !s.Daemon.alive():
			errs = append(errs, remove(dir, s))
		case s.Owner.ID > 0 && !s.Owner.alive():
			// The daemon has seen it too, unless it hangs.
			if waitDead(s.Daemon, endLimit) != nil {
				errs = append(errs, remove(dir, s))
			}
		}
	}
	return errors.Join(errs...)
}

// remove removes what a daemon that is dead or hangs has left: the users of its disk get errors.
func remove(dir string, s *state) error {
	_ = abort(filepath.Join(dir, "fuse"))
	errs := []error{unmount(filepath.Join(dir, "mnt"), time.Second, true)}
	if s != nil && s.Loop >= 0 {
		d := &loopDevice{number: s.Loop, path: s.Node}
		errs = append(errs, d.detach(diskPath(dir)))
	}
	errs = append(errs, unmount(filepath.Join(dir, "fuse"), time.Second, true), tidy(dir))
	return errors.Join(errs...)
}

// tidy removes what the lab itself put into its directory, and the directory if that was all.
func tidy(dir string) error {
	for _, name := range []string{"mnt", "fuse", "control", "state.json", "state.json.new", "daemon.log"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	nodes, _ := filepath.Glob(filepath.Join(dir, "loop*"))
	for _, n := range nodes {
		_ = os.Remove(n)
	}
	_ = os.Remove(dir)
	return nil
}

func waitDead(p process, limit time.Duration) error {
	for end := time.Now().Add(limit); p.alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("the daemon (process %d) does not end", p.ID)
		}
	}
	return nil
}
