package disktest

import (
	"bytes"
	"io/fs"
	"runtime"

	"platter/io/disk"
)

func tree(e *env) {
	d := e.path("a/b/c")
	e.must(e.fs.MkdirAll(d))
	e.must(e.fs.MkdirAll(d))
	e.must(e.fs.SyncDir(e.path("a/b")))
	e.must(disk.MkdirAllSync(e.fs, e.path("x/y/z")))
	e.must(disk.MkdirAllSync(e.fs, e.path("x/y/z")))
	e.must(e.fs.SyncDir(e.path("x/y/z")))
	e.file("plain", []byte("12345")).Close()
	e.fails(e.fs.MkdirAll(e.path("plain/under")), nil, "mkdir under a file")
	_, err := e.fs.Open(e.path("plain/under"), disk.Create)
	e.fails(err, nil, "create under a file")

	for _, name := range []string{"q", "B", "a10", "a9"} {
		e.file("a/"+name, []byte(name)).Close()
	}
	infos, err := e.fs.ReadDir(e.path("a"))
	e.must(err)
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
		if i.IsDir != (i.Name == "b") || !i.IsDir && i.SizeBytes != int64(len(i.Name)) || i.ModTimeMs <= 0 {
			e.Errorf("%+v", i)
		}
	}
	if want := []string{"B", "a10", "a9", "b", "q"}; len(names) != len(want) {
		e.Errorf("entries %q", names)
	} else {
		for i := range want {
			if names[i] != want[i] {
				e.Errorf("entries %q, want %q", names, want)
				break
			}
		}
	}
	i, err := e.fs.Stat(e.path("plain"))
	e.must(err)
	if i.Name != "plain" || i.SizeBytes != 5 || i.IsDir {
		e.Errorf("%+v", i)
	}

	for what, err := range map[string]error{
		"remove":   e.fs.Remove(e.path("none")),
		"sync dir": e.fs.SyncDir(e.path("none")),
		"rename":   e.fs.Rename(e.path("none"), e.path("other")),
	} {
		e.fails(err, fs.ErrNotExist, what+" of what is missing")
	}
	_, err = e.fs.ReadDir(e.path("none"))
	e.fails(err, fs.ErrNotExist, "list of what is missing")
	_, err = e.fs.Stat(e.path("none"))
	e.fails(err, fs.ErrNotExist, "stat of what is missing")

	e.fails(e.fs.Remove(e.path("a")), nil, "remove of a directory with entries")
	e.must(e.fs.Remove(d))
	e.must(e.fs.RemoveAll(e.path("a")))
	e.must(e.fs.RemoveAll(e.path("a")))
	_, err = e.fs.Stat(e.path("a"))
	e.fails(err, fs.ErrNotExist, "stat of a removed tree")
}

func rename(e *env) {
	e.file("from", []byte("new")).Close()
	e.file("to", []byte("old content")).Close()
	e.must(e.fs.Rename(e.path("from"), e.path("to")))
	e.wantContent(e.open("to", disk.ReadOnly), []byte("new"))
	_, err := e.fs.Stat(e.path("from"))
	e.fails(err, fs.ErrNotExist, "stat of the old name")
	e.must(e.fs.Rename(e.path("to"), e.path("to")))

	e.must(e.fs.MkdirAll(e.path("d1/sub")))
	e.file("d1/sub/f", []byte("in a directory")).Close()
	e.must(e.fs.Rename(e.path("d1"), e.path("d2")))
	e.wantContent(e.open("d2/sub/f", disk.ReadOnly), []byte("in a directory"))
	e.must(e.fs.Rename(e.path("d2/sub/f"), e.path("d2/f")))
	e.must(e.fs.SyncDir(e.path("d2")))
	e.must(e.fs.SyncDir(e.path("d2/sub")))
	e.fails(e.fs.Rename(e.path("d2"), e.path("d2/sub/d3")), nil, "rename of a directory into itself")
	e.fails(e.fs.Rename(e.path("to"), e.path("none/to")), fs.ErrNotExist, "rename into a missing directory")
	e.wantContent(e.open("to", disk.ReadOnly), []byte("new"))
}

func removeOpenFile(e *env) {
	if runtime.GOOS == "windows" {
		e.Skip("Windows keeps a file that is open")
	}
	f := e.file("f", []byte("still here"))
	e.must(e.fs.Remove(e.path("f")))
	e.wantContent(f, []byte("still here"))
	e.file("f", []byte("another"))
	e.wantContent(f, []byte("still here"))

	g := e.file("g", []byte("moves"))
	e.must(e.fs.Rename(e.path("g"), e.path("h")))
	e.write(g, 5, []byte(" on"))
	e.wantContent(e.open("h", disk.ReadOnly), []byte("moves on"))
}

func lock(e *env) {
	l, err := e.fs.Lock(e.path(".lock"))
	e.must(err)
	_, err = e.fs.Lock(e.path(".lock"))
	e.fails(err, disk.ErrLocked, "second lock")
	other, err := e.fs.Lock(e.path(".lock2"))
	e.must(err)
	e.must(other.Close())
	e.must(l.Close())
	l, err = e.fs.Lock(e.path(".lock"))
	e.must(err)
	e.must(l.Close())
	_, err = e.fs.Lock(e.path("missing/.lock"))
	e.fails(err, fs.ErrNotExist, "lock in a missing directory")
}

func readFile(e *env) {
	data := noise(10_000)
	e.file("f", data).Close()
	if p, err := disk.ReadFile(e.fs, e.path("f"), 10_000); err != nil || !bytes.Equal(p, data) {
		e.Errorf("%d bytes, %v", len(p), err)
	}
	_, err := disk.ReadFile(e.fs, e.path("f"), 9_999)
	e.fails(err, disk.ErrTooLarge, "a file above the limit")
	_, err = disk.ReadFile(e.fs, e.path("none"), 10)
	e.fails(err, fs.ErrNotExist, "a missing file")
}
