package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// API keys that are treated by name here.
const (
	KeyProduce            = 0
	KeyFetch              = 1
	KeyControlledShutdown = 7
	KeyApiVersions        = 18
)

// Header starts every request.
type Header struct {
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      []byte // a view on the frame; nil: null
}

// flexibleFrom is the first flexible version of each key; never when it has none.
var flexibleFrom = func() [kmsg.MaxKey + 1]int16 {
	var from [kmsg.MaxKey + 1]int16
	for key := range from {
		from[key] = never
		r := kmsg.RequestForKey(int16(key))
		if r == nil {
			continue
		}
		for v := r.MaxVersion(); v >= 0; v-- {
			if r.SetVersion(v); r.IsFlexible() {
				from[key] = v
			}
		}
	}
	return from
}()

const never = 1<<15 - 1

// Flexible reports whether a request has compact lengths and tagged fields. Versions that are newer
// than any known keep what the newest has.
func Flexible(key, version int16) bool {
	return key >= 0 && int(key) < len(flexibleFrom) && version >= flexibleFrom[key]
}

// KeyName is the API's name, for logs and metrics.
func KeyName(key int16) string { return kmsg.NameForKey(key) }

// ParseHeader reads the header that starts a frame and returns what follows it. The key may be unknown:
// then no tagged fields are looked for.
func ParseHeader(frame []byte) (h Header, body []byte, err error) {
	r := reader{p: frame}
	h.Key = r.int16("api key")
	h.Version = r.int16("api version")
	h.CorrelationID = r.int32("correlation id")
	if h.Key != KeyControlledShutdown || h.Version != 0 {
		h.ClientID = r.nullableString("client id")
	}
	r.flex = Flexible(h.Key, h.Version)
	r.tags(nil)
	if r.err != nil {
		return h, nil, &DecodeError{Key: h.Key, Version: h.Version, Field: r.field, Pos: r.pos, Cause: r.err}
	}
	return h, frame[r.pos:], nil
}

// AppendResponseHeader appends what stands before the response's body.
func AppendResponseHeader(dst []byte, h Header) []byte {
	dst = appendInt32(dst, h.CorrelationID)
	return appendNoTags(dst, h.Key != KeyApiVersions && Flexible(h.Key, h.Version))
}
