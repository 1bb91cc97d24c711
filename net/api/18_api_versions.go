package api

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/frame"
	"platter/net/server"
	"platter/net/wire"
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
	resp.ApiKeys = versions.ApiVersions(req.Version).ApiKeys
	h.count(c, None)
	return resp, nil
}

// unsupportedApiVersions is the answer that every client can read (KIP-511).
func (h *Handler) unsupportedApiVersions(c call) *frame.Reply {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = h.count(c, UnsupportedVersion)
	for _, k := range versions.ApiVersions(0).ApiKeys {
		if k.ApiKey == wire.KeyApiVersions {
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	return encode(c.Header, resp)
}
