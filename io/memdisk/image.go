package memdisk

import "platter/io/disk"

const (
	pageBytes      = 4096
	sectorsPerPage = pageBytes / disk.SectorBytes
)

// page is shared between images until one of them writes to it.
type page struct {
	b      [pageBytes]byte
	shared bool // never written again; set before a second image can see the page
}

// image is the content of a file. A missing page is zeros. Bytes at and above size are zeros.
type image struct {
	size  int64
	pages map[int64]*page
}

func newImage() *image { return &image{pages: map[int64]*page{}} }

// share copies the image without its bytes.
func (im *image) share() *image {
	c := &image{size: im.size, pages: make(map[int64]*page, len(im.pages))}
	for i, p := range im.pages {
		c.pages[i] = p.share()
	}
	return c
}

func (p *page) share() *page {
	if p != nil && !p.shared {
		p.shared = true
	}
	return p
}

// readAt copies the bytes at pos, zeros where there are none; the caller keeps to the size.
func (im *image) readAt(b []byte, pos int64) {
	for len(b) > 0 {
		in := pos % pageBytes
		n := min(int64(len(b)), pageBytes-in)
		if p := im.pages[pos/pageBytes]; p != nil {
			copy(b[:n], p.b[in:])
		} else {
			clear(b[:n])
		}
		b, pos = b[n:], pos+n
	}
}

// writable is page i to write to.
func (im *image) writable(i int64) *page {
	p := im.pages[i]
	if p == nil {
		p = new(page)
	} else if p.shared {
		p = &page{b: p.b}
	} else {
		return p
	}
	im.pages[i] = p
	return p
}

// cut sets the size and drops what is above it.
func (im *image) cut(size int64) {
	for i := range im.pages {
		if i*pageBytes >= size {
			delete(im.pages, i)
		}
	}
	if in := size % pageBytes; in > 0 && im.pages[size/pageBytes] != nil {
		clear(im.writable(size / pageBytes).b[in:])
	}
	im.size = size
}

// setSector puts one sector in, whatever the size is.
func (im *image) setSector(sector int64, b []byte) {
	in := sector % sectorsPerPage * disk.SectorBytes
	copy(im.writable(sector / sectorsPerPage).b[in:in+disk.SectorBytes], b)
}

func (im *image) sector(sector int64) []byte {
	b := make([]byte, disk.SectorBytes)
	im.readAt(b, sector*disk.SectorBytes)
	return b
}
