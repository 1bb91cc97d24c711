package broker

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"platter/coord/config"
	"platter/io/backend"
)

// TestExplainIO: a row for each directory and operation, for whatever backend, and nothing is made on disk.
func TestExplainIO(t *testing.T) {
	for _, name := range backend.Names {
		dir := t.TempDir()
		dirs := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
		c, _, err := config.Load(map[string]string{"log.dirs": strings.Join(dirs, ","), "io.backend": name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := ExplainIO(c, &out); err != nil {
			if name == "auto" || name == "portable" || !strings.Contains(err.Error(), "io.backend="+name) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) < 2+22 || !strings.HasPrefix(lines[0], "DATA DIR") || !strings.Contains(lines[len(lines)-1], "this build has") {
			t.Errorf("%s:\n%s", name, out.String())
			continue
		}
		for i, line := range lines[1:23] {
			words := strings.Fields(line)
			if words[0] != dirs[i/11] || !slices.ContainsFunc(append(backend.Built(), "none"), func(b string) bool { return slices.Contains(words, b) }) {
				t.Errorf("%s: %s", name, line)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %q was made", name, left)
		}
	}
}
