package backend

import (
	"slices"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	for _, name := range append([]string{""}, Names...) {
		fs, reason, err := Select(name)
		switch {
		case name == "uring":
			if err == nil || !strings.Contains(err.Error(), "not in this build") {
				t.Errorf("uring: %v", err)
			}
		case err != nil:
			if !strings.Contains(err.Error(), "not in this build") || name == "portable" || name == "auto" {
				t.Errorf("%s: %v", name, err)
			}
		case reason == "" || !slices.Contains(Names, fs.Name()):
			t.Errorf("%q gave %s, because %q", name, fs.Name(), reason)
		case name != "" && name != "auto" && fs.Name() != name:
			t.Errorf("%s gave %s", name, fs.Name())
		}
	}
	if _, _, err := Select("floppy"); err == nil || !strings.Contains(err.Error(), "psync") {
		t.Errorf("an unknown name: %v", err)
	}
}
