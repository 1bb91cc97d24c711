package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOffsetsGolden(t *testing.T) {
	const file = "0\n3\n__consumer_offsets 49 7\nweb.log-x 0 9223372036854775807\nweb.log-x 10 0\n"
	want := Offsets{{"__consumer_offsets", 49}: 7, {"web.log-x", 0}: 1<<63 - 1, {"web.log-x", 10}: 0}
	got, err := ParseOffsets([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(file, string(FormatOffsets(want))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("0\n0\n", string(FormatOffsets(nil))); d != "" {
		t.Error(d)
	}
	if got, err := ParseOffsets(nil); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %v, %v", got, err)
	}
}

func TestOffsetsTolerated(t *testing.T) {
	for name, in := range map[string]string{
		"no last newline": "0\n1\na 0 1",
		"carriage return": "0\r\n1\r\na 0 1\r\n",
		"wide blanks":     "0\n1\na  0   1\n",
		"the last counts": "0\n2\na 0 5\na 0 1\n",
	} {
		got, err := ParseOffsets([]byte(in))
		if err != nil || got[Key{"a", 0}] != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestOffsetsRefused(t *testing.T) {
	for in, want := range map[string]string{
		"1\n0\n":                         `line 1: version "1", want 0`,
		"0":                              `line 2: entry count ""`,
		"0\n-1\n":                        `line 2: entry count "-1"`,
		"0\n99999999999\n":               `line 2: entry count "99999999999"`,
		"0\n2\na 0 1\n":                  "1 entries, line 2 announces 2",
		"0\n1\na 0 1\nb 0 1\n":           "line 4: more than the 1 entries that line 2 announces",
		"0\n1\na 0 1\n\n":                "line 4: more than the 1 entries",
		"0\n1\na 0\n":                    `line 3: 1 fields in "0", want 2`,
		"0\n1\na 0 x\n":                  `line 3: field 2, "x", is no 64-bit integer`,
		"0\n1\na 2147483648 1\n":         `line 3: field 1, "2147483648", is no 32-bit integer`,
		"0\n1\na -1 1\n":                 `line 3: negative partition or offset`,
		"0\n1\n 0 1\n":                   `line 3: topic ""`,
		"\x00\x00\x00\x00":               `version "\x00\x00\x00\x00"`,
		strings.Repeat("9", 1000) + "\n": "…, want 0",
	} {
		_, err := ParseOffsets([]byte(in))
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestMeta(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want Meta
		out  string
	}{
		"Kafka 3.9, ZooKeeper mode": {
			"#\n#Tue Nov 03 10:12:01 UTC 2026\ncluster.id=WZEKwK-bS62oT3ZOSU0dgw\nversion=0\nbroker.id=1\n",
			Meta{0, 1, "WZEKwK-bS62oT3ZOSU0dgw", ""},
			"#\nversion=0\ncluster.id=WZEKwK-bS62oT3ZOSU0dgw\nbroker.id=1\n",
		},
		"Kafka 3.9, KRaft mode": {
			"version=1\nnode.id=7\ncluster.id=WZEKwK-bS62oT3ZOSU0dgw\ndirectory.id=bBVFfrrfQhCFgzHnTnPg2Q\n",
			Meta{1, 7, "WZEKwK-bS62oT3ZOSU0dgw", "bBVFfrrfQhCFgzHnTnPg2Q"},
			"#\nversion=1\ncluster.id=WZEKwK-bS62oT3ZOSU0dgw\nnode.id=7\ndirectory.id=bBVFfrrfQhCFgzHnTnPg2Q\n",
		},
		"old, without a cluster":   {"version=0\nbroker.id=0", Meta{0, 0, "", ""}, "#\nversion=0\nbroker.id=0\n"},
		"empty":                    {"", Meta{0, -1, "", ""}, "#\nversion=0\n"},
		"nothing is interpolated":  {"cluster.id=${HOME}", Meta{0, -1, "${HOME}", ""}, "#\nversion=0\ncluster.id=${HOME}\n"},
		"Java's other separators":  {"broker.id : 3\ncluster.id x\n", Meta{0, 3, "x", ""}, "#\nversion=0\ncluster.id=x\nbroker.id=3\n"},
		"an id beside the version": {"node.id=3\n", Meta{0, -1, "", ""}, "#\nversion=0\n"},
	} {
		got, err := ParseMeta([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.out, string(FormatMeta(got))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for in, want := range map[string]string{
		"version=2\n":                   `version "2", want 0 or 1`,
		"version=x\n":                   `version "x", want 0 or 1`,
		"broker.id=-1\n":                `broker.id "-1" is no broker id`,
		"broker.id=\n":                  `broker.id "" is no broker id`,
		"version=1\nnode.id=2147483648": `node.id "2147483648" is no broker id`,
	} {
		_, err := ParseMeta([]byte(in))
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestPartition(t *testing.T) {
	id, err := ParseUUID("bBVFfrrfQhCFgzHnTnPg2Q")
	if err != nil {
		t.Fatal(err)
	}
	const file = "version: 0\ntopic_id: bBVFfrrfQhCFgzHnTnPg2Q"
	if d := cmp.Diff(file, string(FormatPartition(id))); d != "" {
		t.Error(d)
	}
	for _, in := range []string{file, file + "\n"} {
		if got, err := ParsePartition([]byte(in)); err != nil || got != id {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"": `line 1: "", want version: 0`,
		"version: 1\ntopic_id: bBVFfrrfQhCFgzHnTnPg2Q\n": `line 1: "version: 1"`,
		"version: 0\n": `line 2: "", want topic_id: `,
		"version: 0\ntopic_id: bBVFfrrfQhCFgzHnTnPg2\n":        "has not 22 characters",
		"version: 0\ntopic_id: bBVFfrrfQhCFgzHnTnP+2Q\n":       "illegal base64",
		"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n":       "the topic id is zero",
		"version: 0\ntopic_id: bBVFfrrfQhCFgzHnTnPg2Q\nmore\n": `line 3: "more`,
	} {
		_, err := ParsePartition([]byte(in))
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestCleanShutdown(t *testing.T) {
	if got := string(FormatCleanShutdown(-1)); got != `{"version":0,"brokerEpoch":-1}` {
		t.Error(got)
	}
	for in, want := range map[string]int64{
		"": -1, `{"version":0,"brokerEpoch":4711}`: 4711, `{"version":"0","broker_epoch":"12"}`: 12, `{"version":0}`: -1,
	} {
		if got, err := ParseCleanShutdown([]byte(in)); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"{", "x", `{"broker_epoch":"x"}`, `{"brokerEpoch":{}}`, `{"brokerEpoch":"1"}`} {
		if _, err := ParseCleanShutdown([]byte(in)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestBoot(t *testing.T) {
	const id = "3d4b3a54-1e4e-4c8f-8b43-0f6d4b5a0e11"
	if got := ParseBoot(FormatBoot(id)); got != id {
		t.Error(got)
	}
	if got := ParseBoot([]byte(strings.Repeat("x", 500))); got != "" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0\n2\na 0 5\nb 1 1\n"))
	f.Add([]byte("version=0\nbroker.id=1\ncluster.id=WZEKwK-bS62oT3ZOSU0dgw\n"))
	f.Add([]byte("version: 0\ntopic_id: bBVFfrrfQhCFgzHnTnPg2Q\n"))
	f.Add([]byte(`{"version":"0","broker_epoch":"4711"}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		check := func(err error) bool {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return err == nil
		}
		if o, err := ParseOffsets(p); check(err) {
			again, err := ParseOffsets(FormatOffsets(o))
			if err != nil || cmp.Diff(o, again) != "" {
				t.Fatalf("%v becomes %v, %v", o, again, err)
			}
		}
		if id, err := ParsePartition(p); check(err) {
			if again, err := ParsePartition(FormatPartition(id)); err != nil || again != id {
				t.Fatalf("%v becomes %v, %v", id, again, err)
			}
		}
		if _, err := ParseMeta(p); !check(err) {
			return
		}
		_, err := ParseCleanShutdown(p)
		check(err)
	})
}
