package zkclients

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"platter/tools/proc"
)

// kazooTests are the files of kazoo's own tests that need a server.
var kazooTests = []string{"client", "connection", "watchers", "lock", "barrier", "counter", "queue", "party", "partitioner", "lease", "election"}

// kazooSkipped fail on a single server of Apache's too: they need several, TLS, or read-only mode.
const kazooSkipped = "not TestSSLClient and not TestReconfig and not TestReadOnlyMode and not test_update_host_list"

// kazooPassed is how many are left.
const kazooPassed = 220

// TestKazoo runs the tests that come with kazoo, on a `platter coord` that they start, stop and restart.
func TestKazoo(t *testing.T) {
	if os.Getenv("PLATTER_KAZOO_TESTS") == "" {
		t.Skip("they take two minutes: set PLATTER_KAZOO_TESTS")
	}
	need(t, "python3")
	dir := fetched(t, "kazoo", "python/tests-requirements.txt", func(dir string) *exec.Cmd {
		return exec.Command("sh", "-c", `python3 -m venv "$1" && "$1/bin/python" -m pip install --quiet -r python/tests-requirements.txt`, "sh", dir)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	data := filepath.Join(t.TempDir(), "coordinator")
	server := fmt.Sprintf("%s coord --listen 127.0.0.1:%d --data %s --set maxClientCnxns=0 --set tickTime=2000 --set 4lw.commands.whitelist=* "+
		"--set admin.enableServer=false --set DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=", proc.Binary(t), port, data)
	where, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages", "kazoo", "tests"))
	if err != nil || len(where) != 1 {
		t.Skipf("kazoo has come without its tests: %v", where)
	}
	args := []string{"-m", "pytest", "-p", "kazoo_server", "-p", "no:cacheprovider", "-q", "--tb=short", "-k", kazooSkipped}
	for _, name := range kazooTests {
		args = append(args, filepath.Join(where[0], "test_"+name+".py"))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "python"), args...)
	here, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PYTHONPATH="+here, "PYTHONDONTWRITEBYTECODE=1", "ZOOKEEPER_VERSION=3.8.0", "ZOOKEEPER_CLUSTER_SIZE=1",
		"KAZOO_SERVER="+server, fmt.Sprint("KAZOO_PORT=", port), "KAZOO_DATA="+data)
	out, err := cmd.CombinedOutput()
	summary := regexp.MustCompile(`(?m)^.*\b\d+ passed.*$`).FindString(string(out))
	if err != nil || !strings.Contains(summary, fmt.Sprint(kazooPassed, " passed")) {
		t.Errorf("%v: %q, want %d passed\n%s", err, summary, kazooPassed, out)
	}
	t.Log(summary)
}
