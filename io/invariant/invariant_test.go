package invariant

import "testing"

func caught(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestBrokenOnesSayBothValues(t *testing.T) {
	for want, f := range map[Violation]func(){
		"end 5 is below start 7":                 func() { Check(5 >= 7, "end %d is below start %d", 5, 7) },
		"base offset is 3, must be 4":            func() { Equal(3, 4, "base offset") },
		"high watermark is 9, must be at most 8": func() { AtMost(int64(9), 8, "high watermark") },
		"references is -1, must be at least 0":   func() { AtLeast(-1, 0, "references") },
	} {
		if got := caught(f); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestTheOthersCostNothing(t *testing.T) {
	if v := caught(func() { Check(true, "%d", 1); Equal("a", "a", ""); AtMost(1, 1, ""); AtLeast(1, 1, "") }); v != nil {
		t.Error(v)
	}
	big := int64(1 << 40)
	if n := testing.AllocsPerRun(100, func() { Equal(big, big, "x"); AtMost(big, big+1, "x"); AtLeast(big, 0, "x") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
