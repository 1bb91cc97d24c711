package batch

// Zigzag varints as Kafka writes them. Readers return the position behind, or -1 when the bytes end
// too soon or the number does not fit: longer than 5 or 10 bytes, or bits above the 32nd or 64th.

// varint reads 32 bits at pos. The one-byte case is small enough to be inlined.
func varint(p []byte, pos int) (int32, int) {
	if uint(pos) < uint(len(p)) && p[pos] < 0x80 {
		return int32(p[pos]>>1) ^ -int32(p[pos]&1), pos + 1
	}
	return varintLong(p, pos)
}

func varintLong(p []byte, pos int) (int32, int) {
	if pos < 0 || pos > len(p) {
		return 0, -1
	}
	q := p[pos:]
	if len(q) >= 2 && q[1] < 0x80 {
		u := uint32(q[0]&0x7f) | uint32(q[1])<<7
		return unzigzag32(u), pos + 2
	}
	if len(q) >= 3 && q[2] < 0x80 {
		u := uint32(q[0]&0x7f) | uint32(q[1]&0x7f)<<7 | uint32(q[2])<<14
		return unzigzag32(u), pos + 3
	}
	u, n := uvarint(q, 5)
	if n < 0 || u > 1<<32-1 {
		return 0, -1
	}
	return unzigzag32(uint32(u)), pos + n
}

// varlong reads 64 bits at pos.
func varlong(p []byte, pos int) (int64, int) {
	if uint(pos) < uint(len(p)) && p[pos] < 0x80 {
		return int64(p[pos]>>1) ^ -int64(p[pos]&1), pos + 1
	}
	return varlongLong(p, pos)
}

func varlongLong(p []byte, pos int) (int64, int) {
	if pos < 0 || pos > len(p) {
		return 0, -1
	}
	q := p[pos:]
	if len(q) >= 2 && q[1] < 0x80 {
		return unzigzag64(uint64(q[0]&0x7f) | uint64(q[1])<<7), pos + 2
	}
	u, n := uvarint(q, 10)
	if n < 0 {
		return 0, -1
	}
	return unzigzag64(u), pos + n
}

// uvarint reads at most max bytes; n is how many, or -1.
func uvarint(p []byte, max int) (u uint64, n int) {
	for i, c := range p[:min(max, len(p))] {
		if i == 9 && c > 1 {
			return 0, -1
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return u, i + 1
		}
	}
	return 0, -1
}

func unzigzag32(u uint32) int32 { return int32(u>>1) ^ -int32(u&1) }
func unzigzag64(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// appendVarint appends v as the shortest varint; 32-bit numbers have the same bytes.
func appendVarint(dst []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

// varintBytes is the size of what appendVarint appends.
func varintBytes(v int64) int {
	n := 1
	for u := uint64(v)<<1 ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
