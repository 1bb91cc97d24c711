//go:build linux && !portable

package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

// TestSentByKernel: a leader gives its followers what it has by sendfile and splice: of large batches nothing but the first
// bytes of an answer, which leave with its head, passes through the process.
func TestSentByKernel(t *testing.T) {
	const records, size = 16, 900_000
	coordinator := StartCoordinator(t, proc.Binary(t))
	c := New(t, proc.Binary(t), 3, coordinator.Addr(), nil)
	c.Start()
	adm := c.Admin()
	c.Create("large", 1, 3, nil)
	c.AwaitWhole(adm, "large")
	m := &watched{t: t, c: c}
	before := m.scrape()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Bootstrap(), ",")...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for range records { // one by one, so that each is a batch
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "large", Value: bytes.Repeat([]byte("x"), size)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c.AwaitWhole(adm, "large")
	if err := c.SameBytes("large", 1); err != nil {
		t.Fatal(err)
	}
	after := m.scrape()
	sent := func(methods ...string) (n float64) {
		for _, method := range methods {
			name := `platter_io_sent_bytes_total{method="` + method + `"}`
			n += after.sum(name) - before.sum(name)
		}
		return n
	}
	kernel, copied := sent("sendfile", "splice", "mapped"), sent("copy")
	if replicated := float64(2 * records * size); kernel < 0.85*replicated || copied > 0.15*replicated {
		t.Errorf("of %.0f bytes for two followers %.0f went by the kernel and %.0f were copied", replicated, kernel, copied)
	}
}
