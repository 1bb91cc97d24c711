package zkserver

import (
	"encoding/binary"
	"fmt"
	"io"

	"platter/coord/zk"
)

const (
	// readBytes is the read buffer of a quiet connection.
	readBytes = 4 << 10
	// readStepBytes is how much a buffer grows at a time for a long frame: a peer that announces a
	// frame and sends nothing gets no memory for it.
	readStepBytes = 64 << 10
)

// frameReader cuts the incoming bytes into frames, many from one read when the client pipelines.
type frameReader struct {
	src        io.Reader
	buf        []byte
	start, end int // what is buffered
}

func newFrameReader(src io.Reader) *frameReader {
	return &frameReader{src: src, buf: make([]byte, readBytes)}
}

// peek4 gives the first four bytes without taking them: a frame's length, or a four-letter word.
func (r *frameReader) peek4() ([]byte, error) {
	for r.end-r.start < 4 {
		if err := r.fill(4); err != nil {
			return nil, err
		}
	}
	return r.buf[r.start : r.start+4], nil
}

// ready reports whether next would return without reading.
func (r *frameReader) ready() bool {
	have := r.end - r.start
	return have >= 4 && have-4 >= int(binary.BigEndian.Uint32(r.buf[r.start:]))
}

// next gives a frame's body, valid until the next call. io.EOF: the peer closed between frames.
func (r *frameReader) next() ([]byte, error) {
	head, err := r.peek4()
	if err != nil {
		if r.end > r.start && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	length := int32(binary.BigEndian.Uint32(head))
	if length < 0 || length > zk.MaxFrameBytes {
		return nil, fmt.Errorf("frame of %d bytes: not within 0 to %d", length, zk.MaxFrameBytes)
	}
	n := int(length)
	for r.end-r.start < 4+n {
		if err := r.fill(4 + n); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("frame of %d bytes: %w", n, err)
		}
	}
	body := r.buf[r.start+4 : r.start+4+n : r.start+4+n]
	r.start += 4 + n
	return body, nil
}

// fill reads once, towards a frame of want bytes in the buffer.
func (r *frameReader) fill(want int) error {
	have := r.end - r.start
	switch {
	case have == len(r.buf): // the frame is longer than the buffer
		grown := make([]byte, min(want, have+max(have, readStepBytes)))
		copy(grown, r.buf[r.start:r.end])
		r.buf = grown
	case have == 0 && len(r.buf) > readStepBytes:
		r.buf = make([]byte, readBytes) // a long frame has passed
	case r.start > 0 && (r.end == len(r.buf) || have == 0):
		copy(r.buf, r.buf[r.start:r.end])
	default:
		return r.read()
	}
	r.start, r.end = 0, have
	return r.read()
}

func (r *frameReader) read() error {
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	return err
}
