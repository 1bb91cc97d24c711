// Package zkclients runs ZooKeeper clients that others wrote against our coordinator, as a process: Go's with the tests
// of its own, the command line tool of Debian's package, and those of Node.js, Python and Java with what their users
// do. A client that is not there is skipped by name. The very same is run against a real server, where there is one.
package zkclients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"platter/coord/realzk"
	"platter/tools/proc"
	"platter/tools/zktest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// superDigest is super:test.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// servers runs a test against ours, and against Apache's where it is installed.
func servers(t *testing.T, f func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("ours", func(t *testing.T) {
		f(t, zktest.Coord(t, t.TempDir(), "extendedTypesEnabled=true", "tickTime=2000").Addr)
	})
	t.Run("apache", func(t *testing.T) {
		f(t, zktest.Real(t, realzk.Options{PortFrom: 21600, JVM: []string{"-Dzookeeper.extendedTypesEnabled=true"}}).Addr)
	})
}

// need skips the test where a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

func run(t *testing.T, in string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(in)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return out.String()
}

// scenario runs a script that prints a line for each of its steps.
func scenario(t *testing.T, steps int, name string, args ...string) {
	t.Helper()
	out := run(t, "", name, args...)
	if n := strings.Count("\n"+out, "\nok "); n != steps || strings.Contains(out, "FAILED") {
		t.Errorf("%d steps went well, want %d:\n%s", n, steps, out)
	}
}

// fetched is a directory in the user's cache that holds what a manifest names. Where it is not complete yet, or of
// another manifest, fetch fills it; if that cannot be done here the test is skipped.
func fetched(t *testing.T, name, manifest string, fetch func(dir string) *exec.Cmd) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache directory: %v", err)
	}
	want, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "platter-tests", "zookeeper-"+name)
	done := filepath.Join(dir, "complete")
	if have, err := os.ReadFile(done); err == nil && bytes.Equal(have, want) {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, manifest, filepath.Join(dir, filepath.Base(manifest)))
	if out, err := fetch(dir).CombinedOutput(); err != nil {
		t.Skipf("needs packages that cannot be fetched here: %v\n%.500s", err, out)
	}
	copyFile(t, manifest, done)
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNode(t *testing.T) {
	need(t, "node", "npm")
	dir := fetched(t, "node", "node/package.json", func(dir string) *exec.Cmd {
		cmd := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund")
		cmd.Dir = dir
		return cmd
	})
	script := filepath.Join(dir, "scenario.js")
	copyFile(t, "node/scenario.js", script)
	servers(t, func(t *testing.T, addr string) { scenario(t, 15, "node", script, addr) })
}

func TestPython(t *testing.T) {
	need(t, "python3")
	dir := fetched(t, "python", "python/requirements.txt", func(dir string) *exec.Cmd {
		return exec.Command("sh", "-c", `python3 -m venv "$1" && "$1/bin/python" -m pip install --quiet -r python/requirements.txt`, "sh", dir)
	})
	servers(t, func(t *testing.T, addr string) {
		scenario(t, 26, filepath.Join(dir, "bin", "python"), "python/scenario.py", addr)
	})
}

// TestCurator runs Curator's recipes over the 3.9 client.
func TestCurator(t *testing.T) {
	need(t, "java", "javac", "mvn")
	dir := fetched(t, "curator", "java/pom.xml", func(dir string) *exec.Cmd {
		return exec.Command("mvn", "-q", "-B", "-f", "java/pom.xml", "dependency:copy-dependencies", "-DoutputDirectory="+dir)
	})
	servers(t, func(t *testing.T, addr string) {
		scenario(t, 19, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(dir, "*"), "java/Recipes.java", addr)
	})
}
