package batch

import "fmt"

// Codec is the compression of a batch: attributes bits 0 to 2.
type Codec uint8

// Codecs by their number on the wire.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is the name as Kafka's compression.type spells it.
func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec(%d)", uint8(c))
}

// Valid reports whether the number names a codec.
func (c Codec) Valid() bool { return c <= Zstd }

// ParseCodec finds a codec by its name, "uncompressed" being another word for none.
func ParseCodec(name string) (Codec, error) {
	if name == "uncompressed" {
		return None, nil
	}
	for i, n := range codecNames {
		if n == name {
			return Codec(i), nil
		}
	}
	return None, fmt.Errorf("%w: %q", ErrCodec, name)
}
