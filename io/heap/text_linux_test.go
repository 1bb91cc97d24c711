//go:build linux

package heap

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// fileKB is what the process holds of files.
func fileKB(t *testing.T) (kb int) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		fmt.Sscanf(line, "RssFile: %d kB", &kb)
	}
	return kb
}

// TestForgetStart: code that is given back runs all the same, and what was constant still is.
func TestForgetStart(t *testing.T) {
	const text = "a constant that stands among the program's own pages"
	before := fileKB(t)
	ForgetStart()
	t.Log("kB of files before and after:", before, fileKB(t))
	if s := fmt.Sprint(text, " ", 7); s != text+" 7" {
		t.Fatal(s)
	}
	ForgetStart()
	all := parseMaps(bufio.NewScanner(strings.NewReader("00400000-00401000 r-xp 00000000 fe:01 17 /bin/x y\n" +
		"Size: 4 kB\nPrivate_Dirty: 4 kB\nAnonymous: 0 kB\n7f00-7f10 r--p 00001000 fe:01 17 /bin/x y\nAnonymous: 4 kB\n")))
	if len(all) != 2 || all[0].private || !all[1].private || all[0].file != all[1].file || all[0].to != 0x401000 {
		t.Errorf("%+v", all)
	}
}
