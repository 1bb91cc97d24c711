package lint

import (
	"flag"
	"os"
	"os/exec"
	"testing"
)

var cross = flag.Bool("cross", false, "compile for all platforms and build tags (minutes when nothing is cached)")

// TestCrossCompile: everything compiles where Go runs, and with each set of build tags.
func TestCrossCompile(t *testing.T) {
	if !*cross {
		t.Skip("SKIPPED cross-compilation: it takes minutes; make cross runs it")
	}
	for _, target := range []struct{ goos, goarch, tags string }{
		{"linux", "amd64", "nouring"},
		{"linux", "amd64", "portable"},
		{"darwin", "arm64", ""},
		{"windows", "amd64", ""},
		{"freebsd", "amd64", ""},
	} {
		t.Run(target.goos+"-"+target.goarch+"-"+target.tags, func(t *testing.T) {
			cmd := exec.Command("go", "build", "-gcflags=all=-N -l", "-tags", target.tags, "./...") // quick: nobody runs it
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target.goos, "GOARCH="+target.goarch)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
