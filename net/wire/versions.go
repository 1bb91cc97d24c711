package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Range is a run of versions, inclusive.
type Range struct{ Min, Max int16 }

// Support is what a version table says of a request.
type Support int

const (
	// Unserved: key or version is unknown here; the connection is closed, as Kafka does.
	Unserved Support = iota
	// Refused: the version is advertised, but is answered with UNSUPPORTED_VERSION.
	Refused
	// Served: there is a handler.
	Served
)

// Versions is the table of what is served: each API key, with its range of versions. It is filled
// before the server starts and only read from then on.
type Versions struct {
	served [kmsg.MaxKey + 1]entry
}

type entry struct {
	known      bool
	served     Range
	advertised Range
}

// Register says that a key's versions from min to max are served. Registering a key twice, or a range
// that cannot be decoded, is a bug and panics.
func (t *Versions) Register(key, min, max int16) {
	req := kmsg.RequestForKey(key)
	if req == nil || min < 0 || min > max || max > req.MaxVersion() {
		panic(fmt.Sprintf("wire: key %d has no versions %d to %d", key, min, max))
	}
	e := &t.served[key]
	if e.known {
		panic(fmt.Sprintf("wire: %s is registered twice", KeyName(key)))
	}
	*e = entry{known: true, served: Range{min, max}, advertised: Range{min, max}}
}

// AdvertiseFrom makes a registered key look as if it were served from min: librdkafka wants to see
// Produce 0, or it drops compression (KAFKA-18659).
func (t *Versions) AdvertiseFrom(key, min int16) { t.served[key].advertised.Min = min }

// Support tells what is to be done with a request.
func (t *Versions) Support(key, version int16) Support {
	if key < 0 || int(key) >= len(t.served) {
		return Unserved
	}
	e := &t.served[key]
	switch {
	case !e.known:
		return Unserved
	case version >= e.served.Min && version <= e.served.Max:
		return Served
	case version >= e.advertised.Min && version <= e.advertised.Max:
		return Refused
	}
	return Unserved
}

// Range is what is served of a key; ok is false when nothing is.
func (t *Versions) Range(key int16) (r Range, ok bool) {
	if key < 0 || int(key) >= len(t.served) {
		return Range{}, false
	}
	return t.served[key].served, t.served[key].known
}

// ApiVersions builds the answer to an ApiVersions request of the given version: every advertised key
// in order. To a version that is not served, answer with version 0 and error 35 (UNSUPPORTED_VERSION),
// which every client can read.
func (t *Versions) ApiVersions(version int16) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(version)
	for key := range t.served {
		e := &t.served[key]
		if !e.known {
			continue
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = int16(key), e.advertised.Min, e.advertised.Max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	return resp
}
