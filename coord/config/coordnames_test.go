package config

import (
	"os"
	"strings"
	"testing"
)

// TestZooKeeperNames: every name that the classes of ZooKeeper 3.8.0's server look for is known here: it works, is
// warned of, or is refused, and for a reason of its own.
func TestZooKeeperNames(t *testing.T) {
	names, err := os.ReadFile("testdata/zookeeper-3.8.0-names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(names)) {
		name := strings.TrimSpace(line)
		if d, ok := findCoordinator(name); !ok {
			t.Errorf("%s is not known", name)
		} else if d.Support != Supported && d.Why == "" {
			t.Errorf("%s has no effect for no reason", name)
		}
	}
}
