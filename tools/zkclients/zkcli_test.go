package zkclients

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"platter/coord/realzk"
	"platter/tools/zktest"
)

const zkCli = "/usr/share/zookeeper/bin/zkCli.sh"

var cliVaries = regexp.MustCompile(`(?m)^(ctime|mtime|[cmp]Zxid) = .*|127\.0\.0\.1:[0-9]+|^(SLF4J|Picked up).*\n`)

// cli runs every line as a command of one zkCli.sh, and gives what it prints without what varies.
func cli(t *testing.T, addr, commands string) string {
	t.Helper()
	return cliVaries.ReplaceAllString(run(t, commands+"quit\n", zkCli, "-server", addr), "$1")
}

// TestZkCli: Debian's command line tool prints the same for our server as for the real one.
func TestZkCli(t *testing.T) {
	need(t, "java")
	if _, err := os.Stat(zkCli); err != nil {
		t.Skipf("zkCli.sh of Debian's package zookeeper: %v", err)
	}
	commands, err := os.ReadFile("testdata/zkcli.txt")
	if err != nil {
		t.Fatal(err)
	}
	ours := cli(t, zktest.Coord(t, t.TempDir(), "extendedTypesEnabled=true").Addr, string(commands))
	for _, want := range []string{"Created /smoke/s-0000000000", "type:NodeDataChanged path:/smoke\n", "type:NodeDeleted path:/smoke/kid\n",
		"count=100", "'digest,'u:", "Node not empty: /smoke\n", "Node does not exist: /smoke\n"} {
		if !strings.Contains(ours, want) {
			t.Errorf("no %q in\n%s", want, ours)
		}
	}
	real := zktest.Real(t, realzk.Options{JVM: []string{"-Dzookeeper.extendedTypesEnabled=true"}})
	if d := cmp.Diff(lines(cli(t, real.Addr, string(commands))), lines(ours)); d != "" {
		t.Errorf("-Apache +ours\n%s", d)
	}
}

// lines are what the commands printed, in order, and behind it the events, sorted: another thread of the tool prints
// them, in between. The last one, of its own end, may be missing.
func lines(text string) []string {
	var printed, events []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "WATCHER::" || strings.Contains(line, "state:Closed"):
		case strings.HasPrefix(line, "WatchedEvent"):
			events = append(events, line)
		default:
			printed = append(printed, line)
		}
	}
	slices.Sort(events)
	return append(printed, events...)
}
