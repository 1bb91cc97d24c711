package agree

import (
	"strings"
	"testing"

	"platter/bench/disklab"
)

const sample = `fio: this note comes first
{"fio version":"fio-3.33","jobs":[{"error":0,
 "read":{"io_bytes":0,"runtime":0,"total_ios":0},
 "write":{"io_bytes":409600,"runtime":2000,"total_ios":100}}]}`

func TestParse(t *testing.T) {
	got, err := parse([]byte(sample))
	if err != nil || got.Ops != 100 || got.Bytes != 409600 || got.Seconds != 2 || got.PerSec() != 50 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "fio: sorry", "a torn one": sample[:len(sample)-2], "no job": `{"jobs":[]}`,
		"an error": `{"jobs":[{"error":5}]}`, "nothing done": `{"jobs":[{"error":0}]}`,
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, p []byte) {
		if got, err := parse(p); err == nil && got.Ops == 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Every main cell has a job of fio's.
func TestEveryCellHasAJob(t *testing.T) {
	cells := disklab.Cells(disklab.Options{FilesMax: 256, Pick: main})
	if len(cells) < 16 {
		t.Fatalf("%d cells", len(cells))
	}
	f := fio{dir: t.TempDir(), span: 1 << 28}
	for _, c := range cells {
		if args := f.job(&c, Figure{Ops: 10, Bytes: 10 * c.SizeBytes}); len(args) == 0 {
			t.Errorf("%s, %s: no job", c.Group, c.Name)
		}
	}
}

// What is more than a fifth off is marked, and the model's figures are called modelled.
func TestTable(t *testing.T) {
	f := func(ops int64, seconds float64) Figure {
		return Figure{Ops: ops, Bytes: ops * 4096, Seconds: seconds, Busy: seconds / 2}
	}
	var b strings.Builder
	Table(&b, []Row{{Cell: disklab.Cell{Group: disklab.Device, Name: "random read"}, Model: f(110, 1), Platter: []Figure{f(90, 1), f(100, 1), f(130, 1)}, Fio: []Figure{f(150, 1), f(100, 1), f(130, 1)}}})
	want := "| device: random read | 110 a second | 100 a second (90–130) | 130 a second (100–150) | 1.10 | 1.00 (0.60–1.00) | 4.5 ms (50%), 5 ms (50%), 3.8 ms (50%) | 1.10 |"
	if got := b.String(); !strings.Contains(got, want) || !strings.Contains(got, "(modelled)") {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
