package brokerbench

import (
	"strings"
	"testing"
)

func TestParseDepths(t *testing.T) {
	text := `# TYPE platter_log_write_batches histogram
platter_log_write_batches_bucket{le="1"} 10
platter_log_write_batches_bucket{le="2"} 60
platter_log_write_batches_bucket{le="4"} 99
platter_log_write_batches_bucket{le="+Inf"} 100
platter_log_write_batches_sum 1.25e+02
platter_log_write_batches_count 100
other 7
`
	d, err := parseDepths(strings.NewReader(text))
	if err != nil || d.count != 100 || d.sum != 125 {
		t.Fatalf("%+v, %v", d, err)
	}
	if a, b, c := d.quantile(0.5), d.quantile(0.99), d.quantile(0.999); a != 2 || b != 4 || c != 8 {
		t.Errorf("quantiles %d, %d, %d", a, b, c)
	}
	d.minus(depths{atMost: map[int]int64{1: 10}, count: 10, sum: 10})
	if d.count != 90 || d.sum != 115 || d.atMost[1] != 0 || d.atMost[2] != 60 {
		t.Errorf("%+v", d)
	}
	for _, bad := range []string{"", "other 7", "platter_log_write_batches_count x"} {
		if _, err := parseDepths(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
