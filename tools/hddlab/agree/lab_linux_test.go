package agree

import (
	"os"
	"testing"
	"time"

	"platter/bench/disklab"
	"platter/tools/hddlab/lab"
	"platter/tools/hddlab/labtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	labtest.Cleanup()
	os.Exit(code)
}

// What the drive needs for an operation is the same on the model alone, and in the lab under platter and under fio. It is
// judged by the time that the modelled drive was at work, which a busy machine does not lengthen.
func TestTheThreeAgree(t *testing.T) {
	if err := Check(); err != nil {
		t.Skip(err)
	}
	// The drive has a buffer of 32 MiB, into which it reads ahead while nobody asks: the span is far more than that.
	const budget = 512 << 20
	c := lab.Config{FS: "ext4", SizeBytes: 1 << 30}
	l := labtest.New(t, c)
	c.Dir = l.Dir
	if err := c.Defaults(); err != nil {
		t.Fatal(err)
	}
	rows, err := Run(t.Context(), Options{
		Dir: l.Mount, Lab: l, Drive: disklab.ModelOf(c.Drive(), c.Queue(), budget/2), BudgetBytes: budget, CellTime: time.Second, Rounds: 1, Seed: 1,
		Pick: func(c *disklab.Cell) bool { return c.Group == disklab.Device && c.Depth == 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	const few = 30 // operations: too few for a mean, on a machine that is very busy
	agrees := func(what string, got Figure, want float64) {
		t.Helper()
		each := got.BusyEach()
		t.Logf("%s: the drive is at work for %.2f ms, the model's for %.2f ms (%d operations)", what, 1e3*each, 1e3*want, got.Ops)
		if got.Ops >= few && (each > 2*want || each < want/2) {
			t.Errorf("%s: %.2f ms of the drive's for one, on the model alone %.2f ms", what, 1e3*each, 1e3*want)
		}
	}
	order, random := Figure{}, Figure{}
	for _, r := range rows {
		switch {
		case r.Cell.Pattern == disklab.Random:
			agrees("platter: "+r.Cell.Name, r.Platter[0], r.Model.BusyEach())
			agrees("fio: "+r.Cell.Name, r.Fio[0], r.Model.BusyEach())
			random = r.Fio[0]
		case r.Cell.Op == disklab.Read:
			order = r.Fio[0]
		}
	}
	if factor := ratio(float64(order.Bytes), order.Busy) / ratio(float64(random.Bytes), random.Busy); factor < 20 {
		t.Errorf("in order the drive moves only %.0f times what it moves at random", factor)
	}
}
