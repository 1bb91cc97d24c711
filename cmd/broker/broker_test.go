package broker

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"platter/io/disk"
	"platter/io/memdisk"
)

func TestShareOut(t *testing.T) {
	for _, c := range []struct {
		limit, files, connections int
		coordinated               bool
		want                      budget
	}{
		{1024, 0, 1 << 30, false, budget{480, 480, 0}},
		{1024, 0, 100, false, budget{480, 100, 0}},
		{1024, 100, 1 << 30, false, budget{100, 860, 0}},
		{1024, 5000, 1 << 30, false, budget{928, 32, 0}},
		{1 << 20, 0, 1 << 30, false, budget{1 << 17, 1<<20 - 64 - 1<<17, 0}},
		{10, 0, 1 << 30, false, budget{32, 32, 0}},
		{1024, 0, 1 << 30, true, budget{420, 420, 120}},
		{1 << 20, 0, 1 << 30, true, budget{1 << 17, 1<<20 - 64 - 10_000 - 1<<17, 10_000}},
		{10, 0, 1 << 30, true, budget{32, 32, 8}},
	} {
		got := shareOut(c.limit, c.files, c.connections, c.coordinated)
		if got != c.want {
			t.Errorf("limit %d, files %d, connections %d: %+v", c.limit, c.files, c.connections, got)
		}
	}
}

func TestReachable(t *testing.T) {
	for listening, want := range map[string]string{
		"[::]:9092":      "127.0.0.1:9092",
		"0.0.0.0:19092":  "127.0.0.1:19092",
		"10.1.2.3:9092":  "10.1.2.3:9092",
		"[fe80::1]:9092": "[fe80::1]:9092",
	} {
		a, err := net.ResolveTCPAddr("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(a); got != want {
			t.Errorf("%s is reached at %s, want %s", listening, got, want)
		}
	}
}

func TestTheCoordinatorStaysWhenDataDirectoriesAreReordered(t *testing.T) {
	fs := memdisk.New(memdisk.Options{})
	if got, err := coordinatorDir(fs, []string{"/a", "/b"}); got != "/a/.coordinator" || err != nil {
		t.Errorf("at first it is at %s, %v", got, err)
	}
	for path, content := range map[string]string{
		"/a/.coordinator/.lock": "", "/a/.coordinator/log.0000000000000001": "x", "/b/.coordinator/.lock": "",
		"/a/meta.properties": "version=0\nbroker.id=1\ncluster.id=A\n", "/b/meta.properties": "version=0\nbroker.id=1\ncluster.id=A\n",
	} {
		if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Open(path, disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteV([][]byte{[]byte(content)}, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for _, dirs := range [][]string{{"/a", "/b"}, {"/b", "/a"}, {"/c", "/b", "/a"}} {
		if got, err := coordinatorDir(fs, dirs); got != "/a/.coordinator" || err != nil {
			t.Errorf("with log.dirs %v it is at %s, %v", dirs, got, err)
		}
	}
	if got, err := coordinatorDir(fs, []string{"/b", "/c"}); err == nil || !strings.Contains(err.Error(), `cluster "A"`) {
		t.Errorf("without the directory that has it: %s, %v", got, err)
	}
}
