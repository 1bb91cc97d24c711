package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/frame"
	"platter/net/server"
	"platter/net/wire"
)

// ErrNotServed closes a connection, as Kafka does: a key or version that was never advertised.
var ErrNotServed = errors.New("request is not served")

// call is one request on its way through a handler.
type call struct {
	*server.Request
	ctx context.Context
}

// listener is the listener that the client came in by.
func (c *call) listener() string { return c.Conn.Listener }

// answerer answers one API key.
type answerer func(*Handler, call) (*frame.Reply, error)

var (
	// versions is the table of what is served, and answerers how; filled by each key's file. Produce
	// goes its own way (Handler.Produce).
	versions  wire.Versions
	answerers = map[int16]answerer{}
)

// register serves key from min to max; answer gets the request as kmsg decodes it.
func register[Q kmsg.Request](key kmsg.Key, min, max int16, answer func(*Handler, call, Q) (kmsg.Response, error)) {
	registerRaw(key, min, max, func(h *Handler, c call) (*frame.Reply, error) {
		req, err := wire.Decode(c.Key, c.Version, c.Body)
		if err != nil {
			return nil, err
		}
		resp, err := answer(h, c, req.(Q))
		if err != nil {
			return nil, err
		}
		resp.SetVersion(c.Version)
		return encode(c.Header, resp), nil
	})
}

// registerRaw serves key from min to max; answer decodes and encodes for itself.
func registerRaw(key kmsg.Key, min, max int16, answer answerer) {
	versions.Register(int16(key), min, max)
	answerers[int16(key)] = answer
}

// idBytes is the part of a request header that never changes: key, version, correlation id.
const idBytes = 8

// Accept reads a frame's header and refuses keys and versions that are not served. ApiVersions is never
// refused: it is how a client finds out.
func (h *Handler) Accept(p []byte) (hd wire.Header, body []byte, produce bool, err error) {
	hd, body, err = wire.ParseHeader(p)
	// Key and version are known when the rest of the header is not, and say more.
	switch s := versions.Support(hd.Key, hd.Version); {
	case len(p) < idBytes || s != wire.Unserved:
		if err != nil {
			return hd, nil, false, err
		}
	case hd.Key == wire.KeyApiVersions:
		return hd, nil, false, nil
	default:
		served := "the key is unknown"
		if r, ok := versions.Range(hd.Key); ok {
			served = fmt.Sprintf("versions %d to %d are", r.Min, r.Max)
		}
		return hd, nil, false, fmt.Errorf("%w: %s (key %d) version %d; %s", ErrNotServed, wire.KeyName(hd.Key), hd.Key, hd.Version, served)
	}
	return hd, body, hd.Key == wire.KeyProduce, nil
}

// Serve answers any request but a produce.
func (h *Handler) Serve(ctx context.Context, r *server.Request) (*frame.Reply, error) {
	c := call{r, ctx}
	if r.Key == wire.KeyApiVersions && versions.Support(r.Key, r.Version) != wire.Served {
		return h.unsupportedApiVersions(c), nil
	}
	if !early[r.Key] {
		h.awaitJoined(ctx)
	}
	if responders[r.Key] != nil {
		return h.byController(c)
	}
	return answerers[r.Key](h, c)
}

// encode makes a reply of a response whose version is set.
func encode(hd wire.Header, resp kmsg.Response) *frame.Reply {
	reply := frame.New()
	buf := reply.Buffer()
	buf.B = wire.AppendResponse(buf.B, hd, resp)
	reply.Bytes(buf.B)
	return reply
}

// count counts an error code of an answer, and returns it as it goes on the wire.
func (h *Handler) count(c call, code Code) int16 {
	h.Metrics.Code(c.Key, int16(code), code.String())
	return int16(code)
}
