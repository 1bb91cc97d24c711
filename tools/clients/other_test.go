package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runScenario runs one client's script and shows its steps; every script prints a line a codec, and one that begins with
// "again" where the application has to do anew what the client does not by itself.
func runScenario(t *testing.T, codecs int, name string, args ...string) {
	t.Helper()
	var out string
	for lives := 5; ; lives-- {
		stdout, err := try(nil, name, args...)
		if err == nil {
			out = string(stdout)
			break
		}
		// @platformatic/kafka looks for the broker that it took for the group's coordinator among those that live, and dies
		// of it when it is not there (its consumer.js, line 1202): then the process is started anew.
		if !rolled() || lives == 0 || !strings.Contains(err.Error(), "reading 'host'") {
			t.Fatal(err)
		}
		t.Logf("again after %v", err)
		args = append(slices.Clone(args[:len(args)-1]), args[len(args)-1]+"x")
	}
	t.Logf("%s", out)
	if strings.Contains(out, "again ") && !rolled() {
		t.Error("the client left to the application what nothing has caused")
	}
	if n := strings.Count(out, "ok ") + strings.Count(out, "skipped "); n != codecs || strings.Contains(out, "FAILED") {
		t.Errorf("%d codecs went through, want %d", n, codecs)
	}
}

// cached is a directory for what is fetched once, in the user's cache directory.
func cached(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache directory: %v", err)
	}
	dir := filepath.Join(cache, "platter-tests", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pythonClients makes a virtual environment with the clients, once.
func pythonClients(t *testing.T) string {
	t.Helper()
	need(t, "python3")
	requirements, err := os.ReadFile("python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := cached(t, "python")
	python, done := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "complete")
	if have, err := os.ReadFile(done); err == nil && string(have) == string(requirements) {
		return python
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir},
		{python, "-m", "pip", "install", "--quiet", "-r", "python/requirements.txt"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("needs Python packages, which cannot be installed here: %q: %v\n%.500s", args, err, out)
		}
	}
	write(t, done, string(requirements))
	return python
}

func TestPythonClients(t *testing.T) {
	python := pythonClients(t)
	for client, codecs := range map[string]int{"confluent-kafka": 5, "kafka-python": 5, "aiokafka": 5} {
		t.Run(client, func(t *testing.T) {
			b := broker(t, nil)
			b.through(func(t *testing.T, suffix string) {
				runScenario(t, codecs, python, "python/scenario.py", client, b.Addr(), fmt.Sprint(replicas()), suffix)
			})
		})
	}
}

// nodeClients installs the clients, once, and returns the directory with the scripts.
func nodeClients(t *testing.T) string {
	t.Helper()
	need(t, "node", "npm")
	manifest, err := os.ReadFile("node/package.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := cached(t, "node")
	done := filepath.Join(dir, "complete")
	if have, err := os.ReadFile(done); err != nil || string(have) != string(manifest) {
		write(t, filepath.Join(dir, "package.json"), string(manifest))
		cmd := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("needs npm packages, which cannot be installed here: %v\n%.500s", err, out)
		}
		write(t, done, string(manifest))
	}
	scripts, err := filepath.Glob("node/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.Base(s)), string(text))
	}
	return dir
}

func TestNodeClients(t *testing.T) {
	dir := nodeClients(t)
	for script, codecs := range map[string]int{"kafkajs": 4, "platformatic": 5} {
		t.Run(script, func(t *testing.T) {
			b := broker(t, nil)
			b.through(func(t *testing.T, suffix string) {
				args := []string{filepath.Join(dir, script+".mjs"), b.Addr(), fmt.Sprint(replicas()), suffix}
				runScenario(t, codecs, "node", args...)
			})
		})
	}
}
