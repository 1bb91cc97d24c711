package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "512": 512, "4k": 4096, "8G": 8 << 30, "512MB": 512 << 20, "1t": 1 << 40} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s is %d, %v", text, int64(s), err)
		}
	}
	for _, text := range []string{"", "-1", "G", "8X", "1.5G", "99999999999999999999", "9000000T"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, int64(s))
		}
	}
}
