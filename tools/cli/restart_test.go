package cli

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"platter/tools/proc"
)

// TestRestart kills a broker under a producer and a consumer: both go on when it is back, and what was put into
// the one comes out of the other.
func TestRestart(t *testing.T) {
	b := startBroker(t)
	command(t, 0, "", "topic", "create", "-b", b.Addr(), "restart")

	var out proc.Buffer
	consume := exec.Command(proc.Binary(t), "consume", "-b", b.Addr(), "-t", "restart")
	consume.Stdout = &out
	if err := consume.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = consume.Process.Kill() }()

	in, feed := io.Pipe()
	var stderr bytes.Buffer
	produce := exec.Command(proc.Binary(t), "produce", "-b", b.Addr(), "-t", "restart")
	produce.Stdin, produce.Stderr = in, &stderr
	if err := produce.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = produce.Process.Kill() }()

	var want strings.Builder
	line := func(i int) {
		text := fmt.Sprintf("line %d\n", i)
		want.WriteString(text)
		if _, err := io.WriteString(feed, text); err != nil {
			t.Fatal(err)
		}
	}
	waitOut := func() {
		t.Helper()
		for deadline := time.Now().Add(60 * time.Second); out.String() != want.String(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("read %d bytes, want %d", len(out.String()), want.Len())
			}
		}
	}
	for i := range 100 {
		line(i)
	}
	waitOut()
	b.Kill()
	for i := 100; i < 200; i++ {
		line(i)
	}
	b.Start()
	waitOut()
	feed.Close()
	if err := produce.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("produce: %v\n%s", err, stderr.String())
	}
	if err := consume.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := consume.Wait(); err != nil {
		t.Errorf("consume: %v", err)
	}
}
