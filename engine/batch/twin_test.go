package batch

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The dumb twin of Check: everything in memory, the standard library's varints, one field at a time.

var errTwin = errors.New("twin says no")

func twinCheck(b []byte, l Limits) (Info, error) {
	info := Info{MaxTimestampMs: -1}
	if len(b) < 61 || int64(binary.BigEndian.Uint32(b[8:])) != int64(len(b)-12) || b[16] != 2 {
		return Info{}, errTwin
	}
	if l.BatchBytesMax > 0 && len(b) > l.BatchBytesMax {
		return Info{}, errTwin
	}
	if crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[17:]) {
		return Info{}, errTwin
	}
	attributes := binary.BigEndian.Uint16(b[21:])
	count := int64(int32(binary.BigEndian.Uint32(b[57:])))
	if attributes&8 != 0 || count < 1 || int64(int32(binary.BigEndian.Uint32(b[23:]))) != count-1 {
		return Info{}, errTwin
	}
	if int64(binary.BigEndian.Uint64(b[43:])) >= 0 && int32(binary.BigEndian.Uint32(b[53:])) < 0 {
		return Info{}, errTwin
	}
	p, err := twinInflate(Codec(attributes&7), b[61:], l.DecompressedBytesMax)
	if err != nil {
		return Info{}, err
	}
	info.InflatedBytes = int64(len(p))
	base := int64(binary.BigEndian.Uint64(b[27:]))
	for i := range count {
		var r []byte
		if r, p, err = twinBytes(p, false); err != nil || len(r) == 0 {
			return Info{}, errTwin
		}
		t, err := twinRecord(r, i, l.KeyRequired)
		if err != nil {
			return Info{}, err
		}
		t += base
		if l.CheckTimestamps && t != -1 && (t < l.NowMs-l.BeforeMaxMs || t > l.NowMs+l.AfterMaxMs) {
			return Info{}, errTwin
		}
		if t > info.MaxTimestampMs {
			info.MaxTimestampMs, info.OffsetDeltaMaxTimestamp = t, int32(i)
		}
	}
	if len(p) > 0 {
		return Info{}, errTwin
	}
	return info, nil
}

func twinRecord(r []byte, i int64, keyRequired bool) (delta int64, err error) {
	delta, r, err = twinNum(r[1:], 64)
	if err != nil {
		return 0, err
	}
	offset, r, err := twinNum(r, 32)
	if err != nil || offset != i {
		return 0, errTwin
	}
	key, r, err := twinBytes(r, true)
	if err != nil || key == nil && keyRequired {
		return 0, errTwin
	}
	if _, r, err = twinBytes(r, true); err != nil {
		return 0, err
	}
	headers, r, err := twinNum(r, 32)
	if err != nil || headers < 0 {
		return 0, errTwin
	}
	for ; headers > 0; headers-- {
		if _, r, err = twinBytes(r, false); err != nil {
			return 0, err
		}
		if _, r, err = twinBytes(r, true); err != nil {
			return 0, err
		}
	}
	if len(r) > 0 {
		return 0, errTwin
	}
	return delta, nil
}

func twinNum(p []byte, bits int) (int64, []byte, error) {
	v, n := binary.Varint(p)
	if n <= 0 || bits == 32 && (n > 5 || v != int64(int32(v))) {
		return 0, nil, errTwin
	}
	return v, p[n:], nil
}

func twinBytes(p []byte, nullable bool) (b, rest []byte, err error) {
	n, p, err := twinNum(p, 32)
	if err != nil || n > int64(len(p)) || n < -1 || n == -1 && !nullable {
		return nil, nil, errTwin
	}
	if n == -1 {
		return nil, p, nil
	}
	return p[:n:n], p[n:], nil
}

func twinInflate(c Codec, p []byte, bound int64) ([]byte, error) {
	if bound == 0 {
		bound = DefaultDecompressedBytesMax
	}
	read := func(r io.Reader, err error) ([]byte, error) {
		if err != nil {
			return nil, errTwin
		}
		out, err := io.ReadAll(io.LimitReader(r, bound+1))
		if err != nil || int64(len(out)) > bound {
			return nil, errTwin
		}
		return out, nil
	}
	src := bytes.NewReader(p)
	switch c {
	case None:
		return p, nil
	case Gzip:
		r, err := stdgzip.NewReader(src)
		return read(r, err)
	case Snappy:
		return twinSnappy(p, bound)
	case LZ4:
		if checkLZ4Frame(p) != nil {
			return nil, errTwin
		}
		return read(lz4.NewReader(src), nil)
	case Zstd:
		if len(p) == 0 {
			return nil, errTwin
		}
		r, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdLargeWindowBytesMax))
		return read(r, err)
	}
	return nil, errTwin
}

func twinSnappy(p []byte, bound int64) (out []byte, err error) {
	block := func(p []byte) error {
		n, err := snappy.DecodedLen(p)
		if err != nil || int64(n) > bound-int64(len(out)) || n > snappyRatioMax*len(p) {
			return errTwin
		}
		b, err := snappy.DecodeStrict(nil, p)
		out = append(out, b...)
		return err
	}
	if !bytes.HasPrefix(p, []byte(xerialMagic)) {
		if len(p) == 0 {
			return nil, nil
		}
		return out, block(p)
	}
	for len(p) > 0 {
		if bytes.HasPrefix(p, []byte(xerialMagic)) && len(p) >= 16 {
			p = p[16:]
			continue
		}
		if len(p) < 4 || int64(binary.BigEndian.Uint32(p)) > int64(len(p)-4) {
			return nil, errTwin
		}
		n := binary.BigEndian.Uint32(p)
		if err := block(p[4 : 4+n]); err != nil {
			return nil, errTwin
		}
		p = p[4+n:]
	}
	return out, nil
}
