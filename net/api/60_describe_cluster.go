package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster. Versions 0 to 2. Behaviour: this is a broker's endpoint (type 1); asking it for
// controllers (type 2) is MISMATCHED_ENDPOINT_TYPE. No broker is ever fenced: one that is registered is
// alive.
func init() { register(kmsg.DescribeCluster, 0, 2, (*Handler).describeCluster) }

const (
	brokerEndpoint     = 1
	controllerEndpoint = 2
)

func (h *Handler) describeCluster(c call, req *kmsg.DescribeClusterRequest) (kmsg.Response, error) {
	img := h.Image()
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ClusterAuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, clusterOperations)
	resp.EndpointType, resp.ControllerID, resp.ClusterID = brokerEndpoint, -1, img.ClusterID
	if req.Version >= 1 && req.EndpointType != brokerEndpoint {
		err := refuse(UnsupportedEndpointType, "endpoint type %d is not supported", req.EndpointType)
		if req.EndpointType == controllerEndpoint {
			err = refuse(MismatchedEndpointType, "the request was sent to an endpoint of type BROKER, not CONTROLLER")
		}
		resp.ErrorCode, resp.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
		return resp, nil
	}
	for i := range img.Brokers {
		b := &img.Brokers[i]
		if b.ID == img.ControllerID {
			resp.ControllerID = b.ID
		}
		e, ok := b.Endpoint(c.listener())
		if !ok {
			continue
		}
		rb := kmsg.NewDescribeClusterResponseBroker()
		rb.NodeID, rb.Host, rb.Port, rb.Rack = b.ID, e.Host, e.Port, rackOf(b)
		resp.Brokers = append(resp.Brokers, rb)
	}
	h.count(c, None)
	return resp, nil
}
