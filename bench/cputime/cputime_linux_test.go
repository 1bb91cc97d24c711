package cputime

import (
	"os"
	"testing"
)

func TestOfGrowsWithWork(t *testing.T) {
	before, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	x := 1
	for i := range 50_000_000 {
		x = x*31 + i
	}
	after, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("no CPU time passed over a busy loop (%d): %v, then %v", x, before, after)
	}
	if _, err := Of(1<<22 + 1); err == nil {
		t.Error("a process that cannot exist has CPU time")
	}
}
