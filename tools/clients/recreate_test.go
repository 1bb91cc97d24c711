package clients

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"platter/tools/proc"
)

// output gathers what a process prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// TestRecreatedTopic: consumers whose topic is deleted and made again at once hear of it, and go on with the new one.
// Java's fetches by the topic's id, so it gets all records. librdkafka fetches by name: it cannot tell the topics
// apart, here as with Kafka, and may go on from its old offset; but it must go on.
func TestRecreatedTopic(t *testing.T) {
	consumers := map[string]func(t *testing.T, addr string) []string{
		"kcat": func(t *testing.T, addr string) []string {
			need(t, "kcat")
			return []string{"kcat", "-b", addr, "-G", "g", "t", "-u", "-X", "auto.offset.reset=earliest"}
		},
		"java": func(t *testing.T, addr string) []string {
			return append([]string{"java"}, java(kafkaTools(t), consoleConsumer, "--bootstrap-server", addr, "--topic", "t", "--from-beginning")...)
		},
	}
	for name, words := range consumers {
		t.Run(name, func(t *testing.T) {
			b := broker(t, map[string]string{"auto.create.topics.enable": "false"})
			platter := func(stdin string, args ...string) {
				t.Helper()
				run(t, strings.NewReader(stdin), proc.Binary(t), append(args, "-b", b.Addr())...)
			}
			platter("", "topic", "create", "t")
			platter("old1\nold2\n", "produce", "-t", "t")

			line := words(t, b.Addr())
			cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
			var out, errs output
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Kill()
				cmd.Wait()
			}()
			await := func(what string, there func(out string) bool) {
				t.Helper()
				for deadline := time.Now().Add(60 * time.Second); !there(out.String()); time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%s: it read %q\n%.2000s", what, out.String(), errs.String())
					}
				}
			}
			old := "old1\nold2\n"
			await("the old records", func(out string) bool { return out == old })
			platter("", "topic", "delete", "t")
			platter("", "topic", "create", "t")
			for i := range 3 { // one more than the old topic had, so that the old offset is one of the new topic's
				platter(fmt.Sprintf("new%d\n", i), "produce", "-t", "t")
			}
			if name == "java" {
				await("all new records", func(out string) bool { return out == old+"new0\nnew1\nnew2\n" })
				return
			}
			await("the newest record", func(out string) bool { return strings.HasSuffix(out, "new2\n") })
		})
	}
}
