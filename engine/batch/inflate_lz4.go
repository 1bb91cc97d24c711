package batch

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/pierrec/lz4/v4"
)

// An LZ4 frame, as far as it must be known here; integers are little endian:
//
//	pos  size  field
//	  0     4  magic
//	  4     1  flags: bits 6-7 version (1), 5 independent blocks, 4 block checksums, 3 content size, 2 content checksum, 0 dictionary
//	  5     1  block size, bits 4-6
//	  6   0/8  content size, then 0/4 dictionary id
//	  …     1  header checksum
//	  …     …  blocks: size in 4 bytes (bit 31: stored), data, 0/4 checksum; a size of 0 ends
//	  …   0/4  content checksum
//
// Kafka's Java reader takes exactly one frame of independent blocks and no dictionary. Another frame
// behind it would be passed over there and read elsewhere, so all that is refused.
const (
	lz4Magic           = 0x184D2204
	lz4FlagIndependent = 1 << 5
	lz4FlagBlockSum    = 1 << 4
	lz4FlagSize        = 1 << 3
	lz4FlagContentSum  = 1 << 2
	lz4FlagDictionary  = 1 << 0
)

var (
	errLZ4Magic      = errors.New("does not start with an LZ4 frame")
	errLZ4Dependent  = errors.New("blocks that depend on each other are not supported")
	errLZ4Dictionary = errors.New("a dictionary is not supported")
	errLZ4Trailing   = errors.New("bytes behind the LZ4 frame")
)

func (in *inflater) openLZ4() error {
	if err := checkLZ4Frame(in.payload); err != nil {
		return in.failed(err)
	}
	if in.lz == nil {
		in.lz = lz4.NewReader(nil)
		if err := in.lz.Apply(lz4.ConcurrencyOption(1)); err != nil {
			return in.failed(err)
		}
	}
	in.lz.Reset(&in.src)
	in.r = in.lz
	return nil
}

// checkLZ4Frame hops over the blocks: p must be one frame from its first byte to its last.
func checkLZ4Frame(p []byte) error {
	if len(p) < 7 {
		return io.ErrUnexpectedEOF
	}
	flags := p[4]
	switch {
	case binary.LittleEndian.Uint32(p) != lz4Magic:
		return errLZ4Magic
	case flags&lz4FlagIndependent == 0:
		return errLZ4Dependent
	case flags&lz4FlagDictionary != 0:
		return errLZ4Dictionary
	}
	pos := 7
	if flags&lz4FlagSize != 0 {
		pos += 8
	}
	for {
		if len(p)-pos < 4 {
			return io.ErrUnexpectedEOF
		}
		n := int(binary.LittleEndian.Uint32(p[pos:]) & 0x7fffffff)
		end := binary.LittleEndian.Uint32(p[pos:]) == 0
		pos += 4
		if end {
			break
		}
		if flags&lz4FlagBlockSum != 0 {
			n += 4
		}
		if n > len(p)-pos {
			return io.ErrUnexpectedEOF
		}
		pos += n
	}
	if flags&lz4FlagContentSum != 0 {
		pos += 4
	}
	switch {
	case pos > len(p):
		return io.ErrUnexpectedEOF
	case pos < len(p):
		return errLZ4Trailing
	}
	return nil
}
