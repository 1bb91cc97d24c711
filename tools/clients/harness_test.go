// Package clients runs real Kafka clients against the real broker process.
package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// need skips the test by name when a program is not on this machine.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s, which is not installed", p)
		}
	}
}

// run runs a client program with a limit and returns its standard output.
func run(t *testing.T, stdin io.Reader, name string, args ...string) []byte {
	t.Helper()
	out, err := try(stdin, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try is run with the error, which says all.
func try(stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return nil, fmt.Errorf("%s %q: %w\nstdout: %.2000s\nstderr: %.2000s", name, args, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}
