package zkclients

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"platter/tools/proc"
)

// ensembleOnly are the tests of go-zookeeper that no single server can pass, Apache's neither.
var ensembleOnly = []string{"TestIntegration_NoQuorum", "TestIntegration_IncrementalReconfig", "TestIntegration_Reconfig"}

// wantPassed is how many of its tests are left.
const wantPassed = 44

// TestGoZookeeper runs the tests that come with github.com/go-zookeeper/zk, with testdata/goshim.go.txt in place of their
// starter of servers: its servers are `platter coord`. A test that fails is tried again, alone: some do not wait for
// what they expect.
func TestGoZookeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("they take half a minute")
	}
	dir := moduleWithShim(t)
	command := proc.Binary(t) + " coord --log-level error --set extendedTypesEnabled=true --set DigestAuthenticationProvider.superDigest=" +
		superDigest + " --config"
	out := goTest(dir, command, "-skip", "^("+strings.Join(ensembleOnly, "|")+")$")
	passed, failed := verdicts(out)
	for _, name := range failed {
		again := ""
		for range 3 {
			again = goTest(dir, command, "-run", "^"+name+"$")
			if p, _ := verdicts(again); len(p) == 1 {
				passed = append(passed, name)
				again = ""
				break
			}
		}
		if again != "" {
			t.Errorf("%s fails:\n%s", name, again)
		}
	}
	if len(passed) != wantPassed {
		t.Errorf("%d tests passed, want %d:\n%.4000s", len(passed), wantPassed, out)
	}
}

// moduleWithShim copies the module from the module cache.
func moduleWithShim(t *testing.T) string {
	t.Helper()
	need(t, "go")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-zookeeper/zk").CombinedOutput()
	from := strings.TrimSpace(string(out))
	if err != nil || from == "" {
		t.Skipf("the module go-zookeeper is not there: %v %s", err, out)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755) // the module cache is read-only
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server_help_test.go", "server_java_test.go"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, "testdata/goshim.go.txt", filepath.Join(dir, "shim_test.go"))
	return dir
}

func goTest(dir, command string, args ...string) string {
	cmd := exec.Command("go", append([]string{"test", "-v", "-vet=off", "-count=1", "-timeout=10m"}, append(args, ".")...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ZOOKEEPER_COMMAND="+command, "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s%v\n", out, err)
}

var verdict = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+)`)

func verdicts(out string) (passed, failed []string) {
	for _, m := range verdict.FindAllStringSubmatch(out, -1) {
		if m[1] == "PASS" {
			passed = append(passed, m[2])
		} else {
			failed = append(failed, m[2])
		}
	}
	return passed, failed
}
