package frame

import (
	"fmt"
	"net"
	"sync"

	"platter/io/disk"
)

// gatherBytes is how much is gathered before it is written.
const gatherBytes = 128 << 10

// gatherSizes are the sizes of the pooled buffers: a reply takes the smallest that holds it, or the
// largest. A pool that learns its sizes, like bytebufferpool, would drop the large ones among many small.
var gatherSizes = [...]int{1 << 10, 8 << 10, 32 << 10, gatherBytes}

var gathers [len(gatherSizes)]sync.Pool

// headBytes is how much of a large range is copied behind what was gathered, so that the two leave as one
// write: enough for a whole segment on loopback, whose reader is then awake when the rest comes. It is never
// more than what may be copied.
const headBytes = 64 << 10

// gather collects what is small and writes it in one go.
type gather struct {
	c       net.Conn
	buf     []byte // never grows
	class   int
	copyMax int64 // the largest range that is gathered
	corked  bool
}

// newGather takes a buffer for a reply of n bytes.
func newGather(c net.Conn, n, copyMax int64) *gather {
	class := 0
	for class < len(gatherSizes)-1 && int64(gatherSizes[class]) < n {
		class++
	}
	g, _ := gathers[class].Get().(*gather)
	if g == nil {
		g = &gather{class: class, buf: make([]byte, 0, gatherSizes[class])}
	}
	g.c, g.copyMax = c, min(copyMax, gatherBytes)
	return g
}

func (g *gather) free() {
	g.c, g.buf, g.corked = nil, g.buf[:0], false
	gathers[g.class].Put(g)
}

func (g *gather) add(p *part) error {
	if p.g.File == nil {
		return g.addBytes(p.p)
	}
	if p.g.Len <= g.copyMax {
		return g.addRange(p.g)
	}
	return g.send(p.g)
}

// send sends a large range behind what was gathered. The socket is corked until finish, where that pays: what
// does not fill a segment waits for what comes next, so no range and no head leaves a small packet.
func (g *gather) send(x disk.Range) error {
	if !g.corked {
		g.corked = cork(g.c, true)
	}
	if head := min(min(headBytes, g.copyMax, int64(cap(g.buf)))-int64(len(g.buf)), x.Len); len(g.buf) > 0 && head > 0 {
		if err := g.addRange(disk.Range{File: x.File, Pos: x.Pos, Len: head}); err != nil {
			return err
		}
		x.Pos, x.Len = x.Pos+head, x.Len-head
	}
	if err := g.flush(); err != nil || x.Len == 0 {
		return err
	}
	n, err := x.File.SendTo(g.c, x.Pos, x.Len)
	if err != nil {
		return fmt.Errorf("send %s at %d: %d of %d bytes: %w", x.File.Path(), x.Pos, n, x.Len, err)
	}
	return nil
}

// finish writes what is left and lets the last segment go.
func (g *gather) finish() error {
	err := g.flush()
	if g.corked {
		cork(g.c, false)
	}
	return err
}

func (g *gather) addBytes(p []byte) error {
	if err := g.room(len(p)); err != nil {
		return err
	}
	if len(p) > cap(g.buf)-len(g.buf) {
		_, err := g.c.Write(p)
		return err
	}
	g.buf = append(g.buf, p...)
	return nil
}

func (g *gather) addRange(x disk.Range) error {
	n := int(x.Len)
	if err := g.room(n); err != nil {
		return err
	}
	at := len(g.buf)
	g.buf = g.buf[:at+n]
	if m, err := x.File.ReadAt(g.buf[at:], x.Pos); m < n {
		return fmt.Errorf("read %s at %d: %d of %d bytes: %w", x.File.Path(), x.Pos, m, n, err)
	}
	disk.CountSent(disk.SendCopy, x.Len)
	return nil
}

// room writes what was gathered when there is no room for n more bytes.
func (g *gather) room(n int) error {
	if n <= cap(g.buf)-len(g.buf) {
		return nil
	}
	return g.flush()
}

func (g *gather) flush() error {
	if len(g.buf) == 0 {
		return nil
	}
	_, err := g.c.Write(g.buf)
	g.buf = g.buf[:0]
	return err
}
