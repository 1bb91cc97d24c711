package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
)

// TestScripts runs transcripts: "script" sets the rules, "do" runs operations, a line each, and prints
// what each gave.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		inner := memdisk.New(memdisk.Options{})
		inner.MkdirAll("/d")
		f := New(inner, 1, clock.Real{})
		s := &session{fs: f, files: map[string]disk.File{}}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "script":
				if err := f.Script(td.Input); err != nil {
					return err.Error() + "\n"
				}
				return ""
			case "do":
				var out strings.Builder
				for _, line := range strings.Split(td.Input, "\n") {
					fmt.Fprintln(&out, s.do(strings.Fields(line)))
				}
				return out.String()
			case "fired":
				return strings.Join(f.Fired(), "\n") + "\n"
			}
			return "unknown command"
		})
	})
}

// session holds the open files, by their paths.
type session struct {
	fs    *FS
	files map[string]disk.File
}

func (s *session) do(w []string) string {
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(w[i], 10, 64)
		return n
	}
	var err error
	path := "/d/" + w[1]
	f := s.files[path]
	switch w[0] {
	case "open":
		if f, err = s.fs.Open(path, disk.Create); err == nil {
			s.files[path] = f
		}
	case "write": // write NAME POS TEXT
		n, err := f.WriteV([][]byte{[]byte(w[3][:1]), []byte(w[3][1:])}, number(2))
		return outcome(fmt.Sprintf("wrote %d", n), err)
	case "read": // read NAME POS LEN
		p := make([]byte, number(3))
		n, err := f.ReadAt(p, number(2))
		return outcome(fmt.Sprintf("%q", p[:n]), err)
	case "send": // send NAME POS LEN
		a, b := net.Pipe()
		got := make(chan []byte)
		go func() {
			p, _ := io.ReadAll(b)
			got <- p
		}()
		n, err := f.SendTo(a, number(2), number(3))
		a.Close()
		return outcome(fmt.Sprintf("sent %d: %q", n, <-got), err)
	case "sync":
		err = f.Sync()
	case "syncall":
		err = s.fs.Sync([]disk.File{s.files["/d/"+w[1]], s.files["/d/"+w[2]]})
	case "truncate":
		err = f.Truncate(number(2))
	case "close":
		err = f.Close()
	case "rename":
		err = s.fs.Rename(path, "/d/"+w[2])
	case "remove":
		err = s.fs.Remove(path)
	case "syncdir":
		err = s.fs.SyncDir("/d")
	case "list":
		infos, e := s.fs.ReadDir("/d")
		var names []string
		for _, i := range infos {
			names = append(names, i.Name)
		}
		return outcome(strings.Join(names, " "), e)
	case "size":
		n, err := f.Size()
		return outcome(fmt.Sprint(n), err)
	default:
		return "unknown operation " + w[0]
	}
	return outcome("ok", err)
}

func outcome(what string, err error) string {
	if err == nil {
		return what
	}
	if errors.Is(err, disk.ErrFull) {
		what += " [full]"
	}
	if !errors.Is(err, ErrInjected) && err != io.EOF {
		what += " [not injected]"
	}
	if rest, ok := strings.CutPrefix(what, "ok"); ok {
		what = "failed" + rest
	}
	return what + ": " + err.Error()
}

func TestChanceFollowsTheSeed(t *testing.T) {
	run := func(seed uint64) string {
		inner := memdisk.New(memdisk.Options{})
		f := New(inner, seed, clock.Real{})
		if err := f.Script("write * p=0.3: EIO\nread * p=0.5: bitflip"); err != nil {
			t.Fatal(err)
		}
		file, _ := f.Open("/f", disk.Create)
		var out bytes.Buffer
		p := make([]byte, 8)
		for i := range 100 {
			n, err := file.WriteV([][]byte{[]byte("12345678")}, int64(8*i))
			fmt.Fprint(&out, n, err)
			file.ReadAt(p, 0)
			out.Write(p)
		}
		return out.String()
	}
	if first, second := run(1), run(1); first != second {
		t.Error("one seed, two courses")
	}
	if run(1) == run(2) {
		t.Error("two seeds, one course")
	}
}

func TestWrittenBuffersAreNotTouched(t *testing.T) {
	f := New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	f.Script("write *: bitflip 20")
	file, _ := f.Open("/f", disk.Create)
	data := bytes.Repeat([]byte("x"), 100)
	file.WriteV([][]byte{data}, 0)
	if !bytes.Equal(data, bytes.Repeat([]byte("x"), 100)) {
		t.Error("the caller's buffer was changed")
	}
	got := make([]byte, 100)
	file.ReadAt(got, 0)
	if bytes.Equal(got, data) {
		t.Error("no bit was flipped")
	}
}

func TestLatencyWaitsOnTheClock(t *testing.T) {
	clk := clock.NewVirtual(time.Unix(0, 0))
	f := New(memdisk.New(memdisk.Options{}), 1, clk)
	f.Script("open *: latency 3s\nopen *: latency 2s")
	done := make(chan struct{})
	go func() {
		f.Open("/f", disk.Create)
		close(done)
	}()
	for _, step := range []time.Duration{3 * time.Second, 2 * time.Second} {
		for clk.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		select {
		case <-done:
			t.Fatal("too early")
		default:
		}
		clk.Advance(step)
	}
	<-done
}

func TestHangLastsUntilTheNextScript(t *testing.T) {
	f := New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	f.Script("sync *: hang")
	file, _ := f.Open("/f", disk.Create)
	done := make(chan error)
	go func() { done <- file.Sync() }()
	for len(f.Fired()) == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-done:
		t.Fatal("it did not hang")
	default:
	}
	f.Script("")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzScript(f *testing.F) {
	f.Add("write *.log after 3: ENOSPC once\n* : latency 5ms # slow")
	f.Add("send,read a/*[b] in 3-9 every 2 p=0.5: short 3 EIO times 4")
	f.Fuzz(func(t *testing.T, script string) {
		rules, err := parse(script)
		for _, r := range rules {
			if err == nil && (r.every < 1 || r.chance < 0 || r.chance > 1 || r.from < 0 || r.to <= r.from) {
				t.Errorf("%q became %+v", r.text, r)
			}
		}
	})
}
