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

// gather collects what is small and writes it in one go.
type gather struct {
	c     net.Conn
	buf   []byte // never grows
	class int
}

// newGather takes a buffer for a reply of n bytes.
func newGather(c net.Conn, n int64) *gather {
	class := 0
	for class < len(gatherSizes)-1 && int64(gatherSizes[class]) < n {
		class++
	}
	g, _ := gathers[class].Get().(*gather)
	if g == nil {
		g = &gather{class: class, buf: make([]byte, 0, gatherSizes[class])}
	}
	g.c = c
	return g
}

func (g *gather) free() {
	g.c, g.buf = nil, g.buf[:0]
	gathers[g.class].Put(g)
}

func (g *gather) add(p *part) error {
	if p.g.File == nil {
		return g.addBytes(p.p)
	}
	if p.g.Len <= CopyBytesMax {
		return g.addRange(p.g)
	}
	if err := g.flush(); err != nil {
		return err
	}
	n, err := p.g.File.SendTo(g.c, p.g.Pos, p.g.Len)
	if err != nil {
		return fmt.Errorf("send %s at %d: %d of %d bytes: %w", p.g.File.Path(), p.g.Pos, n, p.g.Len, err)
	}
	return nil
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
