package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
)

// TestCommandLines runs the scripts in testdata/cli: a command line, a word each argument, and what it prints on
// standard output (1>) and standard error (2>), and its exit code. No broker is there. A file command
// writes a file into the test's directory, $DIR.
func TestCommandLines(t *testing.T) {
	datadriven.Walk(t, "testdata/cli", func(t *testing.T, path string) {
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "file" {
				var name string
				d.ScanArgs(t, "name", &name)
				if err := os.WriteFile(filepath.Join(dir, name), []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return ""
			}
			args := strings.Fields(strings.ReplaceAll(d.Input, "$DIR", dir))
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
			out := prefixed("1> ", stdout.String()) + prefixed("2> ", stderr.String()) + fmt.Sprintf("exit %d\n", code)
			return strings.ReplaceAll(out, dir, "$DIR")
		})
	})
}

func prefixed(prefix, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		// Log lines start with the time.
		if strings.HasPrefix(line, "time=") {
			_, line, _ = strings.Cut(line, " ")
		}
		out.WriteString(strings.TrimRight(prefix+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	return out.String()
}

// TestEveryCommandHasExamples: --help shows how a command is used, not only what its flags are.
func TestEveryCommandHasExamples(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s has no short description", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
}
