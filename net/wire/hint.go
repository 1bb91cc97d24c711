package wire

// LeaderHint tells a client who leads a partition that it asked in vain (KIP-951). The zero value says
// nothing and is not sent.
type LeaderHint struct {
	Known bool
	ID    int32 // broker, -1: none
	Epoch int32
}

// Endpoint is where a hinted leader listens (KIP-951).
type Endpoint struct {
	ID   int32
	Host string
	Port int32
	Rack string // "": null
}

// leaderHintBytes is the size of a hint: two integers and no tags.
const leaderHintBytes = 4 + 4 + 1

// appendLeaderHint appends one tagged field.
func appendLeaderHint(dst []byte, tag uint32, h LeaderHint) []byte {
	dst = appendUvarint(dst, tag)
	dst = appendUvarint(dst, leaderHintBytes)
	dst = appendInt32(dst, h.ID)
	dst = appendInt32(dst, h.Epoch)
	return append(dst, 0)
}

// appendEndpoints appends the tagged fields of a response: tag 0, when there are endpoints.
func appendEndpoints(dst []byte, endpoints []Endpoint) []byte {
	if len(endpoints) == 0 {
		return append(dst, 0)
	}
	size := uvarintBytes(uint32(len(endpoints)) + 1)
	for _, e := range endpoints {
		size += 4 + uvarintBytes(uint32(len(e.Host))+1) + len(e.Host) + 4 + 1
		if e.Rack != "" {
			size += uvarintBytes(uint32(len(e.Rack))+1) + len(e.Rack)
		} else {
			size++
		}
	}
	dst = append(dst, 1, 0)
	dst = appendUvarint(dst, uint32(size))
	dst = appendLength(dst, len(endpoints), true)
	for _, e := range endpoints {
		dst = appendInt32(dst, e.ID)
		dst = appendString(dst, e.Host, true)
		dst = appendInt32(dst, e.Port)
		dst = appendStringOrNull(dst, e.Rack, true)
		dst = append(dst, 0)
	}
	return dst
}
