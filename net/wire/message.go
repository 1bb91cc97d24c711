package wire

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// BodyBytesMax bounds a request that kmsg decodes: its values take many times its bytes. The largest
	// in use tell all the state of a cluster, some 50 bytes a partition.
	BodyBytesMax = 8 << 20
	// largeBodyBytes is from where on requests are decoded one at a time.
	largeBodyBytes = 512 << 10
)

// largeBody keeps many large requests from being decoded at once.
var largeBody = make(chan struct{}, 1)

// Decode reads a request of any kind but Produce and Fetch. The values are its own: nothing of the body
// is kept. kmsg judges each announced number of elements by the bytes that are left before it takes
// memory for them.
func Decode(key, version int16, body []byte) (kmsg.Request, error) {
	fail := func(err error) (kmsg.Request, error) {
		return nil, &DecodeError{Key: key, Version: version, Pos: -1, Cause: err}
	}
	req := kmsg.RequestForKey(key)
	switch {
	case req == nil:
		return fail(ErrUnknownKey)
	case version < 0 || version > req.MaxVersion():
		return fail(ErrVersion)
	case len(body) > BodyBytesMax:
		return fail(ErrTooLarge)
	}
	if len(body) > largeBodyBytes {
		largeBody <- struct{}{}
		defer func() { <-largeBody }()
	}
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return fail(ErrShort)
	}
	return req, nil
}

// AppendResponse appends header and body of a response that kmsg encodes. The response has its version
// set, which may differ from the request's for ApiVersions.
func AppendResponse(dst []byte, h Header, resp kmsg.Response) []byte {
	return resp.AppendTo(AppendResponseHeader(dst, h))
}
