package batch

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Snappy comes in two framings. librdkafka and Sarama send one raw block. Java's snappy-java sends
//
//	pos  size  field
//	  0     8  "\x82SNAPPY\0"
//	  8     4  version (1)
//	 12     4  the oldest version that can read it (1)
//	 16     …  blocks, each behind its length in 4 bytes, big endian
//
// and its reader takes such streams one behind the other, and a raw block as well.
const (
	xerialMagic       = "\x82SNAPPY\x00"
	xerialHeaderBytes = 16
)

// snappyRatioMax is above what a snappy block can grow by: three bytes copy at most 64.
const snappyRatioMax = 22

func (in *inflater) openSnappy() error {
	if in.xerial() {
		return in.xerialHeader()
	}
	return nil
}

func (in *inflater) xerial() bool { return bytes.HasPrefix(in.payload, []byte(xerialMagic)) }

// xerialHeader passes over the header that starts the rest.
func (in *inflater) xerialHeader() error {
	if len(in.rest) < xerialHeaderBytes || string(in.rest[:len(xerialMagic)]) != xerialMagic {
		return in.failed(io.ErrUnexpectedEOF)
	}
	in.rest = in.rest[xerialHeaderBytes:]
	return nil
}

func (in *inflater) nextSnappy() ([]byte, error) {
	block := in.rest
	if !in.xerial() {
		in.rest = nil
		if len(block) == 0 {
			return nil, io.EOF
		}
		return in.snappyBlock(block)
	}
	for {
		if len(in.rest) == 0 {
			return nil, io.EOF
		}
		if in.rest[0] != xerialMagic[0] {
			break
		}
		if err := in.xerialHeader(); err != nil {
			return nil, err
		}
	}
	if len(in.rest) < 4 {
		return nil, in.failed(io.ErrUnexpectedEOF)
	}
	n := binary.BigEndian.Uint32(in.rest)
	if int64(n) > int64(len(in.rest)-4) {
		return nil, bad(ErrInflate, HeaderBytes, "snappy", "block of %d bytes, %d are there", n, len(in.rest)-4)
	}
	block, in.rest = in.rest[4:4+n], in.rest[4+n:]
	return in.snappyBlock(block)
}

// snappyBlock inflates one block, whose announced size is judged before memory is taken.
func (in *inflater) snappyBlock(block []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, in.failed(err)
	}
	if err := in.spend(int64(n)); err != nil {
		return nil, err
	}
	if n > snappyRatioMax*len(block) {
		return nil, bad(ErrInflate, HeaderBytes, "snappy", "block of %d bytes announces %d", len(block), n)
	}
	in.grow(max(n, 1))
	// The quicker Decode takes blocks with S2's extension too, which other clients could not read.
	p, err := snappy.DecodeStrict(in.buf, block)
	if err != nil {
		return nil, in.failed(err)
	}
	return p, nil
}
