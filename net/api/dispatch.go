package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/valyala/bytebufferpool"

	"platter/net/frame"
	"platter/net/server"
)

// Causes that close a connection, as Kafka does.
var (
	ErrUnknownKey         = errors.New("API key is not served")
	ErrUnsupportedVersion = errors.New("API version is not served")
	ErrMalformed          = errors.New("request is malformed")
	ErrTooLarge           = errors.New("request of this kind is too large")
)

// smallBytesMax bounds the requests that are decoded whole: all but Produce and Fetch. Decoding takes a
// few times a request's size in memory.
const smallBytesMax = 8 << 20

// call is one decoded request on its way through a handler.
type call struct {
	*server.Request
	ctx context.Context
}

// Listener is the listener that the client came in by.
func (c *call) Listener() string { return c.Conn.Listener }

// entry is one API key as it is served. Exactly one of the functions is set; produce goes its own way.
type entry struct {
	key, min, max int16
	advertisedMin int16 // below min, for a key that is advertised lower than it is served
	answer        func(h *Handler, c call, req kmsg.Request) (kmsg.Response, error)
	raw           func(h *Handler, c call) (*frame.Reply, error)
}

// entries is filled by each key's file.
var entries = map[int16]*entry{}

// register serves key from min to max; answer gets the decoded request as kmsg has it.
func register[Q kmsg.Request](key kmsg.Key, min, max int16, answer func(*Handler, call, Q) (kmsg.Response, error)) {
	add(&entry{key: int16(key), min: min, max: max, advertisedMin: min,
		answer: func(h *Handler, c call, req kmsg.Request) (kmsg.Response, error) { return answer(h, c, req.(Q)) }})
}

func add(e *entry) {
	if entries[e.key] != nil {
		panic(fmt.Sprintf("api key %d is registered twice", e.key))
	}
	entries[e.key] = e
}

const (
	keyProduce     = int16(kmsg.Produce)
	keyApiVersions = int16(kmsg.ApiVersions)
)

// Accept reads a frame's header and refuses keys and versions that are not served.
func (h *Handler) Accept(_ *server.Conn, p []byte) (server.Header, error) {
	hd, err := readHeader(p)
	if err != nil {
		return hd, err
	}
	e := entries[hd.Key]
	if e == nil {
		return hd, fmt.Errorf("%w: %s (%d), version %d", ErrUnknownKey, kmsg.NameForKey(hd.Key), hd.Key, hd.Version)
	}
	served := hd.Version >= e.advertisedMin && hd.Version <= e.max
	if !served && hd.Key != keyApiVersions {
		return hd, fmt.Errorf("%w: %s version %d, served are %d to %d", ErrUnsupportedVersion,
			kmsg.NameForKey(hd.Key), hd.Version, e.advertisedMin, e.max)
	}
	hd.Produce = hd.Key == keyProduce
	return hd, nil
}

// readHeader reads a request header: key, version, correlation id, client id, and tags on flexible versions.
func readHeader(p []byte) (server.Header, error) {
	var hd server.Header
	if len(p) < 8 {
		return hd, fmt.Errorf("%w: header of %d bytes", ErrMalformed, len(p))
	}
	hd.Key = int16(binary.BigEndian.Uint16(p))
	hd.Version = int16(binary.BigEndian.Uint16(p[2:]))
	hd.CorrelationID = int32(binary.BigEndian.Uint32(p[4:]))
	hd.BodyPos = 8
	if hd.Key == int16(kmsg.ControlledShutdown) && hd.Version == 0 {
		return hd, nil // the one header without a client id
	}
	if len(p) < 10 {
		return hd, fmt.Errorf("%w: header without client id", ErrMalformed)
	}
	n := int(int16(binary.BigEndian.Uint16(p[8:])))
	hd.BodyPos = 10
	if n >= 0 {
		if len(p) < 10+n {
			return hd, fmt.Errorf("%w: client id of %d bytes in a frame of %d", ErrMalformed, n, len(p))
		}
		hd.ClientID = string(p[10 : 10+n])
		hd.BodyPos += n
	}
	req := kmsg.RequestForKey(hd.Key)
	if req == nil {
		return hd, nil
	}
	req.SetVersion(hd.Version)
	if req.IsFlexible() && hd.Version <= req.MaxVersion() {
		var err error
		hd.BodyPos, err = skipTags(p, hd.BodyPos)
		return hd, err
	}
	return hd, nil
}

// skipTags skips a tag section that starts at pos.
func skipTags(p []byte, pos int) (int, error) {
	uvarint := func() (int, bool) {
		v, n := binary.Uvarint(p[pos:])
		if n <= 0 || v > uint64(len(p)) {
			return 0, false
		}
		pos += n
		return int(v), true
	}
	count, ok := uvarint()
	for ; ok && count > 0; count-- {
		var size int
		if _, ok = uvarint(); !ok {
			break
		}
		if size, ok = uvarint(); ok {
			pos += size
			ok = pos <= len(p)
		}
	}
	if !ok {
		return 0, fmt.Errorf("%w: header tags", ErrMalformed)
	}
	return pos, nil
}

// Serve answers any request but a produce.
func (h *Handler) Serve(ctx context.Context, r *server.Request) (*frame.Reply, error) {
	e := entries[r.Key]
	c := call{r, ctx}
	if r.Key == keyApiVersions && r.Version > e.max {
		return h.encode(c, unsupportedApiVersions(e))
	}
	if e.raw != nil {
		return e.raw(h, c)
	}
	req := kmsg.RequestForKey(r.Key)
	req.SetVersion(r.Version)
	if err := decode(c, req); err != nil {
		return nil, err
	}
	resp, err := e.answer(h, c, req)
	if err != nil {
		return nil, err
	}
	resp.SetVersion(r.Version)
	return h.encode(c, resp)
}

// decode reads the body into req, whose version is set. Strings are copied.
func decode(c call, req kmsg.Request) error {
	if len(c.Body) > smallBytesMax {
		return fmt.Errorf("%w: %s of %d bytes, allowed are %d", ErrTooLarge, kmsg.NameForKey(c.Key), len(c.Body), smallBytesMax)
	}
	if err := req.ReadFrom(c.Body); err != nil {
		return fmt.Errorf("%w: %s version %d: %w", ErrMalformed, kmsg.NameForKey(c.Key), c.Version, err)
	}
	return nil
}

// encode makes the reply: response header and body.
func (h *Handler) encode(c call, resp kmsg.Response) (*frame.Reply, error) {
	buf := bytebufferpool.Get()
	buf.B = appendHeader(buf.B[:0], c.Request, resp.IsFlexible())
	buf.B = resp.AppendTo(buf.B)
	reply := new(frame.Reply)
	reply.Bytes(buf.B)
	reply.OnRelease(func() { bytebufferpool.Put(buf) })
	return reply, nil
}

// appendHeader writes a response header. ApiVersions' never has tags, so that any client can read it.
func appendHeader(dst []byte, r *server.Request, flexible bool) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.CorrelationID))
	if flexible && r.Key != keyApiVersions {
		dst = append(dst, 0)
	}
	return dst
}

// count counts an error code of an answer.
func (h *Handler) count(c call, code Code) int16 {
	h.Metrics.Code(c.Key, int16(code), code.String())
	return int16(code)
}
