package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"platter/coord/realzk"
	"platter/coord/zkserver"
	"platter/tools/zktest"
)

func steady(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = Steady(strings.TrimSpace(lines[i]))
	}
	return lines
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func probed(t *testing.T, run func(string, *strings.Builder) error, addr string) string {
	t.Helper()
	var out strings.Builder
	if err := run(addr, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func cases(addr string, out *strings.Builder) error  { return Probe(addr, out) }
func fields(addr string, out *strings.Builder) error { return ProbeFields(addr, out) }

// TestLikeApache: our server prints what Apache's printed.
func TestLikeApache(t *testing.T) {
	got := probed(t, cases, zktest.Ours(t, zkserver.Config{}))
	if d := cmp.Diff(steady(recorded(t, "apache-3.8.0.txt")), steady(got)); d != "" {
		t.Errorf("-Apache +ours\n%s", d)
	}
}

// TestFieldsLikeApache: the four-letter words tell the same things.
func TestFieldsLikeApache(t *testing.T) {
	got := probed(t, fields, zktest.Ours(t, zkserver.Config{}))
	if d := cmp.Diff(steady(recorded(t, "fields-3.8.0.txt")), steady(got)); d != "" {
		t.Errorf("-Apache +ours\n%s", d)
	}
}

// TestApacheItself: what is recorded is what a real server says today; -v prints it. On a machine that is too busy the
// probe's session may expire under it: then it is asked again.
func TestApacheItself(t *testing.T) {
	const tries = 3
	for _, x := range []struct {
		name string
		run  func(string, *strings.Builder) error
	}{{"fields-3.8.0.txt", fields}, {"apache-3.8.0.txt", cases}} {
		var diff string
		for range tries {
			// A server of its own each time: the cases leave watches and nodes behind.
			got := probed(t, x.run, zktest.Real(t, realzk.Options{}).Addr)
			if diff = cmp.Diff(steady(recorded(t, x.name)), steady(got)); diff == "" {
				break
			}
		}
		if diff != "" {
			t.Errorf("%s: -recorded +live\n%s", x.name, diff)
		}
	}
}
