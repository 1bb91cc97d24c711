package zkserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"platter/io/disk"
)

// Log and snapshot files have one shape: a header, and frames one behind the other.
//
//	header   0  magic       "PLTZKLOG" or "PLTZKSNP"
//	         8  version u32 1
//	        12  salt u32    random for each file; every frame's CRC starts with it
//	        16  zxid u64    log: of its first entry; snapshot: of the last that it holds
//	        24  zero u32
//	        28  crc u32     CRC32C of bytes 0 to 27
//	frame    0  crc u32     CRC32C of salt and bytes 4 to the end
//	         4  length u32  of the payload, at least 1
//	         8  position u64 of this frame in the file
//	        16  payload
//
// Sixteen zero bytes, or the end of the file, end the frames. The salt keeps a client from putting bytes
// into its data that pass for a frame, the position keeps a frame from being taken for another.
const (
	logMagic        = "PLTZKLOG"
	snapMagic       = "PLTZKSNP"
	fileVersion     = 1
	fileHeaderBytes = 32
	frameHeadBytes  = 16
	framePayloadMax = 80 << 20 // a batch and the longest request (FrameBytesMax)
	scanWindowBytes = 1 << 20
	// movedBytesMax bounds the work of looking for frames that have moved: a client's data may look like their
	// beginnings.
	movedBytesMax = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptError is damage that no crash explains. Pos is a position in the file.
type CorruptError struct {
	Path string
	Pos  int64
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt coordinator file %s at %d: %v", e.Path, e.Pos, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// fileHeader is what stands at position 0.
type fileHeader struct {
	magic string
	salt  uint32
	zxid  int64
}

func (h fileHeader) append(b []byte) []byte {
	at := len(b)
	b = append(b, h.magic...)
	b = binary.BigEndian.AppendUint32(b, fileVersion)
	b = binary.BigEndian.AppendUint32(b, h.salt)
	b = binary.BigEndian.AppendUint64(b, uint64(h.zxid))
	b = binary.BigEndian.AppendUint32(b, 0)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// errBadHeader: the header is damaged, or was never written whole.
var errBadHeader = errors.New("damaged file header")

func readHeader(b []byte, magic string) (fileHeader, error) {
	if len(b) < fileHeaderBytes || string(b[:8]) != magic {
		return fileHeader{}, errBadHeader
	}
	if crc32.Checksum(b[:28], castagnoli) != binary.BigEndian.Uint32(b[28:]) {
		return fileHeader{}, errBadHeader
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != fileVersion {
		return fileHeader{}, fmt.Errorf("file version %d, this program knows %d", v, fileVersion)
	}
	return fileHeader{magic, binary.BigEndian.Uint32(b[12:]), int64(binary.BigEndian.Uint64(b[16:]))}, nil
}

func saltCRC(salt uint32) uint32 {
	return crc32.Checksum(binary.BigEndian.AppendUint32(nil, salt), castagnoli)
}

// beginFrame and sealFrame put a frame into b, whose payload is appended between the two.
func beginFrame(b []byte) []byte { return append(b, make([]byte, frameHeadBytes)...) }

// sealFrame completes the frame that fills b and will stand at pos.
func sealFrame(b []byte, salt uint32, pos int64) {
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-frameHeadBytes))
	binary.BigEndian.PutUint64(b[8:], uint64(pos))
	binary.BigEndian.PutUint32(b, crc32.Update(saltCRC(salt), castagnoli, b[4:]))
}

// scanner reads a file's frames in order, through a window.
type scanner struct {
	file   disk.File
	size   int64
	head   fileHeader
	pos    int64 // of the next frame
	window []byte
	at     int64 // position of the window
}

// newScanner reads the header. A file too short for one gives errBadHeader.
func newScanner(f disk.File, magic string) (*scanner, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	s := &scanner{file: f, size: size, pos: fileHeaderBytes}
	b, err := s.bytes(0, fileHeaderBytes)
	if err != nil {
		return nil, err
	}
	s.head, err = readHeader(b, magic)
	return s, err
}

// bytes gives up to n bytes at pos, fewer only at the end of the file; valid until the next call.
func (s *scanner) bytes(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), max(s.size-pos, 0)))
	if pos < s.at || pos+int64(n) > s.at+int64(len(s.window)) {
		want := int(min(int64(max(n, scanWindowBytes)), s.size-pos))
		if cap(s.window) < want {
			s.window = make([]byte, want)
		}
		s.window, s.at = s.window[:want], pos
		if got, err := s.file.ReadAt(s.window, pos); err != nil && !(err == io.EOF && got == want) {
			s.window = s.window[:0]
			return nil, err
		}
	}
	return s.window[pos-s.at:][:n], nil
}

// rewrite writes n bytes at pos as they are.
func (s *scanner) rewrite(pos int64, n int) error {
	b, err := s.bytes(pos, n)
	if err != nil || len(b) == 0 {
		return err
	}
	_, err = s.file.WriteV([][]byte{b}, pos)
	return err
}

// errBadFrame: the bytes at the scanner's position are no frame.
var errBadFrame = errors.New("damaged frame")

// next gives the next frame's payload, valid until the next call. io.EOF: the frames end here.
// errBadFrame: they end here too, but not as a whole file does.
func (s *scanner) next() ([]byte, error) {
	payload, err := s.frame(s.pos)
	if err == nil {
		s.pos += frameHeadBytes + int64(len(payload))
	}
	return payload, err
}

func (s *scanner) frame(pos int64) ([]byte, error) { return s.frameOf(pos, pos) }

// frameOf is frame for one that was written at another position.
func (s *scanner) frameOf(pos, written int64) ([]byte, error) {
	head, err := s.bytes(pos, frameHeadBytes)
	if err != nil {
		return nil, err
	}
	if len(head) < frameHeadBytes {
		if allZero(head) {
			return nil, io.EOF
		}
		return nil, errBadFrame
	}
	n := int64(binary.BigEndian.Uint32(head[4:]))
	switch {
	case allZero(head):
		return nil, io.EOF
	case n == 0 || n > framePayloadMax || pos+frameHeadBytes+n > s.size:
		return nil, errBadFrame
	case binary.BigEndian.Uint64(head[8:]) != uint64(written):
		return nil, errBadFrame
	}
	b, err := s.bytes(pos, frameHeadBytes+int(n))
	if err != nil {
		return nil, err
	}
	if crc32.Update(saltCRC(s.head.salt), castagnoli, b[4:]) != binary.BigEndian.Uint32(b) {
		return nil, errBadFrame
	}
	return b[frameHeadBytes:], nil
}

// later looks for a whole frame anywhere behind the scanner's position; also for one that has moved, because bytes
// were put in or taken out before it.
func (s *scanner) later() (pos int64, found bool, err error) {
	moved := int64(movedBytesMax)
	for pos = s.pos + 1; pos+frameHeadBytes < s.size; pos++ {
		head, err := s.bytes(pos, frameHeadBytes)
		if err != nil {
			return 0, false, err
		}
		written := int64(binary.BigEndian.Uint64(head[8:]))
		if written != pos {
			if written < fileHeaderBytes || written >= s.size+movedBytesMax || moved <= 0 {
				continue
			}
			moved -= min(int64(binary.BigEndian.Uint32(head[4:])), framePayloadMax)
		}
		switch _, err := s.frameOf(pos, written); err {
		case nil:
			return pos, true, nil
		case errBadFrame, io.EOF:
		default:
			return 0, false, err
		}
	}
	return 0, false, nil
}

// zeroTail reports whether nothing but zeros follows the scanner's position.
func (s *scanner) zeroTail() (bool, error) {
	for pos := s.pos; pos < s.size; {
		b, err := s.bytes(pos, scanWindowBytes)
		if err != nil || !allZero(b) {
			return false, err
		}
		pos += int64(len(b))
	}
	return true, nil
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
