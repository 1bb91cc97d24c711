package iobench

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"platter/io/backend"
	"platter/io/disk"
)

// Env is where and with what a run was made.
type Env struct {
	Kernel     string            `json:"kernel"`
	Arch       string            `json:"arch"`
	CPUs       int               `json:"cpus"`
	FileSystem string            `json:"file_system"`
	Device     string            `json:"device"`
	Tags       string            `json:"tags"` // of the build; empty: none
	Revision   string            `json:"revision"`
	Go         string            `json:"go"`
	Auto       map[string]string `json:"auto"`     // operation: backend that auto chose
	Backends   map[string]string `json:"backends"` // "runs", or why it does not
}

// Label tells builds from each other.
func (e *Env) Label() string {
	if e.Tags == "" {
		return "no tags"
	}
	return e.Tags
}

// Describe tells where and with what a run in a directory is made.
func Describe(fs disk.FS, dir string) Env {
	e := Env{
		Kernel: kernel(), Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), FileSystem: fs.Caps(dir).FileSystem,
		Device: device(dir), Go: runtime.Version(), Auto: map[string]string{}, Backends: map[string]string{},
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "-tags":
				e.Tags = s.Value
			case "vcs.revision":
				e.Revision = s.Value
			}
		}
	}
	for _, c := range backend.Explain(fs, []string{dir}) {
		e.Auto[c.Op] = c.Backend
	}
	for _, name := range backend.Names {
		other, _, err := backend.Select(name)
		if err != nil {
			e.Backends[name] = err.Error()
			continue
		}
		closeFS(other)
		e.Backends[name] = "runs"
	}
	return e
}

// String is one line for people.
func (e *Env) String() string {
	return fmt.Sprintf("%s %s, %d processors, %s on %s, build tags: %s", e.Kernel, e.Arch, e.CPUs, e.FileSystem, e.Device, e.Label())
}
