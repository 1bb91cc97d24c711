package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kgo"
)

// records that the transcripts format, by name.
var records = map[string]*kgo.Record{
	"plain": {
		Topic: "access", Partition: 3, Offset: 42, Timestamp: time.UnixMilli(1700000000123),
		Key: []byte("user1"), Value: []byte("hello"),
	},
	"nulls": {Topic: "access", Timestamp: time.UnixMilli(0)},
	"empty": {Topic: "access", Timestamp: time.UnixMilli(0), Key: []byte{}, Value: []byte{}},
	"headers": {
		Topic: "access", Timestamp: time.UnixMilli(1), Value: []byte("v"),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "c", Value: []byte{}}},
	},
	"binary": {Topic: "access", Timestamp: time.UnixMilli(1), Key: []byte{0xff, 0}, Value: []byte("a\"<\x00>")},
}

// TestText runs the scripts in testdata/text.txt: formats, escapes and places to begin, as typed.
func TestText(t *testing.T) {
	datadriven.RunTest(t, "testdata/text.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSuffix(line, "\n")
			switch d.Cmd {
			case "format":
				var name string
				d.ScanArgs(t, "record", &name)
				f, err := ParseFormat(line, d.HasArg("nulls"))
				if err != nil {
					fmt.Fprintf(&out, "error: %v\n", err)
					continue
				}
				fmt.Fprintf(&out, "%q\n", f(nil, records[name]))
			case "json":
				fmt.Fprintf(&out, "%s", JSONFormat(nil, records[line]))
			case "delimited":
				f := DelimitedFormat("\n", "|", true, d.HasArg("nulls"))
				fmt.Fprintf(&out, "%q\n", f(nil, records[line]))
			case "start":
				s, err := ParseStart(line)
				if err != nil {
					fmt.Fprintf(&out, "error: %v\n", err)
					continue
				}
				fmt.Fprintf(&out, "%s: %s %d\n", line, [...]string{"beginning", "end", "offset", "last", "time"}[s.kind], s.n)
			case "bootstrap":
				b, err := SplitBootstrap(line)
				fmt.Fprintf(&out, "%q %v\n", b, err)
			}
		}
		return out.String()
	})
}

// TestSplitter compares the splitter with strings.Split on random input, read in random pieces.
func TestSplitter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		delim := []string{"\n", "\x00", "--", "abab"}[rnd.IntN(4)]
		var text strings.Builder
		for range rnd.IntN(50) {
			n := rnd.IntN(20)
			if rnd.IntN(20) == 0 {
				n = rnd.IntN(2 * slabBytes)
			}
			for range n {
				text.WriteByte("ab-\n\x00"[rnd.IntN(5)])
			}
			text.WriteString(delim)
		}
		want := strings.Split(text.String(), delim)
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		var r io.Reader = strings.NewReader(text.String())
		switch rnd.IntN(3) {
		case 0:
			r = iotest.DataErrReader(r)
		case 1:
			r = iotest.HalfReader(r)
		}
		s := newSplitter(r, delim, 1<<30)
		var got [][]byte
		for {
			p, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		// Compared only now: what was returned earlier must still be what it was.
		if len(got) != len(want) {
			t.Fatalf("delimiter %q: %d pieces, want %d", delim, len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], []byte(want[i])) {
				t.Fatalf("delimiter %q: piece %d differs", delim, i)
			}
		}
	}
}

func TestSplitterLimit(t *testing.T) {
	s := newSplitter(strings.NewReader("ok\n"+strings.Repeat("x", 5*slabBytes)+"\n"), "\n", slabBytes)
	if p, err := s.next(); err != nil || string(p) != "ok" {
		t.Fatalf("%q, %v", p, err)
	}
	if _, err := s.next(); err == nil || !strings.Contains(err.Error(), "record 2") {
		t.Fatalf("err = %v", err)
	}
	if s.to > 4*slabBytes {
		t.Errorf("read %d bytes of a record that may have %d", s.to, slabBytes)
	}
}

// FuzzFormat: any format is refused or formats any record.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"%s", `%t/%p/%o %T %k=%s\n`, `\x41%%`, "%", `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		form, err := ParseFormat(format, true)
		if err != nil {
			return
		}
		for _, r := range records {
			form(nil, r)
		}
	})
}
