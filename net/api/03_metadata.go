package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/engine/store"
	"platter/net/frame"
	"platter/net/wire"
)

// Metadata. Versions 0 to 13. Behaviour:
//   - all topics when the list is empty in version 0, null from version 1 on;
//   - topics by id from version 12 on (KIP-516); in 10 and 11 an id, like a null name before 12, is
//     INVALID_REQUEST;
//   - a topic that is missing is created when the client (version 4 and later) and
//     auto.create.topics.enable allow it; the answer waits for its leaders, within a bound;
//   - brokers and leaders are told by the endpoints of the listener that the client came in by;
//   - authorized operations (version 8 and later) are all that the resource has, there being no
//     authorizer, and only when they were asked for.
func init() {
	registerRaw(kmsg.Metadata, 0, 13, (*Handler).metadataRaw)
}

// notAsked stands in for authorized operations that were not asked for.
const notAsked = -1 << 31

// What an authorizer would grant, by AclOperation code: read 3, write 4, create 5, delete 6, alter 7,
// describe 8, cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)

func operations(asked bool, all int32) int32 {
	if asked {
		return all
	}
	return notAsked
}

// metadataRaw answers requests for all topics from the cache.
func (h *Handler) metadataRaw(c call) (*frame.Reply, error) {
	decoded, err := wire.Decode(c.Key, c.Version, c.Body)
	if err != nil {
		return nil, err
	}
	req := decoded.(*kmsg.MetadataRequest)
	img := h.Image()
	all := len(req.Topics) == 0 && (req.Version == 0 || req.Topics == nil)
	if !all {
		return encode(c.Header, h.describeTopics(c, img, req)), nil
	}
	k := metadataKey{c.listener(), req.Version, req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations}
	body := h.metadata.get(img, k, func() []byte {
		resp := h.newMetadata(c, img, req)
		for _, t := range img.Topics {
			resp.Topics = append(resp.Topics, h.describeTopic(c, img, t, req))
		}
		return resp.AppendTo(nil)
	})
	h.count(c, None)
	reply := frame.New()
	reply.Bytes(wire.AppendResponseHeader(make([]byte, 0, 8), c.Header))
	reply.Bytes(body)
	return reply, nil
}

// newMetadata is an answer without topics.
func (h *Handler) newMetadata(c call, img *cluster.Image, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.SetVersion(req.Version)
	if img.ClusterID != "" {
		resp.ClusterID = kmsg.StringPtr(img.ClusterID)
	}
	resp.ControllerID = -1
	for _, b := range img.Brokers {
		if b.ID == img.ControllerID {
			resp.ControllerID = b.ID
		}
		e, ok := b.Endpoint(c.listener())
		if !ok {
			continue
		}
		mb := kmsg.NewMetadataResponseBroker()
		mb.NodeID, mb.Host, mb.Port, mb.Rack = b.ID, e.Host, e.Port, rackOf(&b)
		resp.Brokers = append(resp.Brokers, mb)
	}
	resp.AuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, clusterOperations)
	return resp
}

// describeTopics answers for named topics, in the order asked.
func (h *Handler) describeTopics(c call, img *cluster.Image, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	failed := map[string]error{}
	if !byIDTooEarly(req) {
		img, failed = h.createMissing(c, img, req)
	}
	resp := h.newMetadata(c, img, req)
	seen := make(map[string]bool, len(req.Topics))
	for i := range req.Topics {
		t, code := h.findTopic(img, &req.Topics[i], req, failed)
		name := req.Topics[i].Topic
		if t != nil {
			name = &t.Name
		}
		if name != nil && seen[*name] {
			continue
		}
		if name != nil {
			seen[*name] = true
		}
		var mt kmsg.MetadataResponseTopic
		if code == None {
			mt = h.describeTopic(c, img, t, req)
		} else {
			mt = kmsg.NewMetadataResponseTopic()
			mt.Topic, mt.TopicID, mt.ErrorCode = name, req.Topics[i].TopicID, int16(code)
			mt.IsInternal = name != nil && isInternal(*name)
			if name == nil && req.Version < 12 {
				mt.Topic = kmsg.StringPtr("")
			}
			mt.AuthorizedOperations = notAsked
		}
		resp.Topics = append(resp.Topics, mt)
		h.count(c, code)
	}
	return resp
}

func byIDTooEarly(req *kmsg.MetadataRequest) bool {
	if req.Version >= 12 {
		return false
	}
	for i := range req.Topics {
		if req.Topics[i].Topic == nil || req.Topics[i].TopicID != [16]byte{} {
			return true
		}
	}
	return false
}

// findTopic finds one topic of the request, or says why not.
func (h *Handler) findTopic(img *cluster.Image, q *kmsg.MetadataRequestTopic, req *kmsg.MetadataRequest, failed map[string]error) (*cluster.Topic, Code) {
	if byIDTooEarly(req) {
		return nil, InvalidRequest
	}
	if q.TopicID != [16]byte{} {
		if t := img.ByID[store.UUID(q.TopicID)]; t != nil {
			return t, None
		}
		return nil, UnknownTopicID
	}
	if q.Topic == nil {
		return nil, InvalidRequest
	}
	if t := img.Topics[*q.Topic]; t != nil {
		return t, None
	}
	if err := failed[*q.Topic]; err != nil {
		return nil, codeOf(err)
	}
	if !validTopicName(*q.Topic) {
		return nil, InvalidTopicException
	}
	return nil, UnknownTopicOrPartition
}

func (h *Handler) describeTopic(c call, img *cluster.Image, t *cluster.Topic, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	mt := kmsg.NewMetadataResponseTopic()
	mt.Topic, mt.TopicID, mt.IsInternal = &t.Name, t.ID, isInternal(t.Name)
	mt.AuthorizedOperations = operations(req.IncludeTopicAuthorizedOperations, topicOperations)
	mt.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i := range t.Partitions {
		p := &t.Partitions[i]
		mp := &mt.Partitions[i]
		mp.Default()
		mp.Partition, mp.Leader, mp.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		mp.Replicas, mp.ISR = p.Replicas, p.ISR
		mp.OfflineReplicas = offlineReplicas(img, p)
		if code := reachable(img, p.Leader, c.listener(), req.Version); code != None {
			mp.Leader, mp.ErrorCode = -1, int16(code)
		}
	}
	return mt
}

// reachable says what keeps a client of the listener from the leader.
func reachable(img *cluster.Image, leader int32, listener string, version int16) Code {
	b, ok := img.Broker(leader)
	if !ok {
		return LeaderNotAvailable
	}
	if _, ok := b.Endpoint(listener); !ok {
		if version < 6 {
			return LeaderNotAvailable
		}
		return ListenerNotFound
	}
	return None
}

// metadataKey tells apart the answers for all topics that one image gives.
type metadataKey struct {
	listener             string
	version              int16
	topicOps, clusterOps bool
}

// metadataCache keeps the encoded answers for all topics of the newest image: with 10,000 partitions they
// are large, and every client asks for them again and again.
type metadataCache struct {
	mu      sync.Mutex
	image   *cluster.Image
	answers map[metadataKey][]byte
}

// cachedAnswersMax bounds the cache: clients are of few kinds.
const cachedAnswersMax = 16

func (m *metadataCache) get(img *cluster.Image, k metadataKey, encode func() []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image != img || len(m.answers) == cachedAnswersMax {
		m.image, m.answers = img, map[metadataKey][]byte{}
	}
	if body, ok := m.answers[k]; ok {
		return body
	}
	body := encode()
	m.answers[k] = body
	return body
}
