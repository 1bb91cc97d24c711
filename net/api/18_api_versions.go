package api

import (
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/server"
)

// ApiVersions (KIP-35, KIP-511). Versions 0 to 5. Behaviour:
//   - it lists exactly what is served, with Kafka's one exception (Produce, see there);
//   - an unknown version gets a version 0 answer with UNSUPPORTED_VERSION and the range of this key alone;
//   - from version 3 on the client names its software, which is checked as Kafka does;
//   - no features: they belong to KRaft clusters.
func init() { register(kmsg.ApiVersions, 0, 5, (*Handler).apiVersions) }

// softwareName is what KIP-511 allows for a client's name and version.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func (h *Handler) apiVersions(c call, req *kmsg.ApiVersionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrApiVersionsResponse()
	if req.Version >= 3 {
		if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
			resp.ErrorCode = h.count(c, InvalidRequest)
			return resp, nil
		}
		c.Conn.Client.Store(&server.Client{Name: req.ClientSoftwareName, Version: req.ClientSoftwareVersion})
	}
	for _, e := range entries {
		resp.ApiKeys = append(resp.ApiKeys, versionsOf(e))
	}
	slices.SortFunc(resp.ApiKeys, func(a, b kmsg.ApiVersionsResponseApiKey) int { return int(a.ApiKey - b.ApiKey) })
	h.count(c, None)
	return resp, nil
}

func versionsOf(e *entry) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = e.key, e.advertisedMin, e.max
	return k
}

func unsupportedApiVersions(e *entry) kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = int16(UnsupportedVersion)
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{versionsOf(e)}
	return resp
}
