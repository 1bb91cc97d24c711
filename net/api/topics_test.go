package api_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

func metadataFor(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		q := kmsg.NewMetadataRequestTopic()
		q.Topic = &name
		req.Topics = append(req.Topics, q)
	}
	return req
}

func TestMetadataLists(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 2)
	p := b.dial()
	all := kmsg.NewPtrMetadataRequest() // null
	for _, c := range []struct {
		version int16
		req     *kmsg.MetadataRequest
		topics  int
	}{{0, metadataFor(), 1}, {1, metadataFor(), 0}, {1, all, 1}, {13, metadataFor(), 0}, {13, all, 1}, {9, metadataFor("t", "t"), 1}} {
		for range 2 { // from the cache too
			resp := ask[*kmsg.MetadataResponse](p, c.version, c.req)
			if len(resp.Topics) != c.topics || len(resp.Brokers) != 1 {
				t.Fatalf("version %d: %d topics and %d brokers, want %d", c.version, len(resp.Topics), len(resp.Brokers), c.topics)
			}
		}
	}
	resp := ask[*kmsg.MetadataResponse](p, 13, metadataFor("t"))
	top := resp.Topics[0]
	if top.TopicID != id || top.IsInternal || len(top.Partitions) != 2 || top.AuthorizedOperations != -1<<31 {
		t.Fatalf("topic: %+v", top)
	}
	for i, part := range top.Partitions {
		if part.Partition != int32(i) || part.Leader != 1 || part.ErrorCode != 0 || len(part.Replicas) != 1 || len(part.ISR) != 1 {
			t.Fatalf("partition: %+v", part)
		}
	}
	if resp.ControllerID != 1 || *resp.ClusterID == "" || resp.Brokers[0].Host != "127.0.0.1" {
		t.Fatalf("cluster: %+v", resp)
	}
	ops := metadataFor("t")
	ops.IncludeTopicAuthorizedOperations, ops.IncludeClusterAuthorizedOperations = true, true
	if resp := ask[*kmsg.MetadataResponse](p, 8, ops); resp.Topics[0].AuthorizedOperations != 3576 || resp.AuthorizedOperations != 8096 {
		t.Fatalf("operations %d and %d", resp.Topics[0].AuthorizedOperations, resp.AuthorizedOperations)
	}
}

func TestMetadataByID(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	req := kmsg.NewPtrMetadataRequest()
	q := kmsg.NewMetadataRequestTopic()
	q.TopicID = id
	req.Topics = append(req.Topics, q)
	if got := ask[*kmsg.MetadataResponse](p, 12, req).Topics[0]; got.ErrorCode != 0 || *got.Topic != "t" {
		t.Fatalf("by id: %+v", got)
	}
	req.Topics[0].Topic = kmsg.StringPtr("t")
	code(t, "an id in version 10", ask[*kmsg.MetadataResponse](p, 10, req).Topics[0].ErrorCode, api.InvalidRequest)
	req.Topics[0].Topic = nil
	req.Topics[0].TopicID[0]++
	got := ask[*kmsg.MetadataResponse](p, 12, req).Topics[0]
	code(t, "unknown id", got.ErrorCode, api.UnknownTopicID)
	if got.TopicID != req.Topics[0].TopicID || got.Topic != nil {
		t.Fatalf("unknown id: %+v", got)
	}
}

func TestAutoCreation(t *testing.T) {
	b := startBroker(t, map[string]string{"num.partitions": "3"})
	p := b.dial()
	no := metadataFor("t")
	no.AllowAutoTopicCreation = false
	code(t, "not allowed by the client", ask[*kmsg.MetadataResponse](p, 9, no).Topics[0].ErrorCode, api.UnknownTopicOrPartition)
	yes := metadataFor("t", "bad name", "__consumer_offsets", "t")
	yes.AllowAutoTopicCreation = true
	got := ask[*kmsg.MetadataResponse](p, 9, yes).Topics
	code(t, "created", got[0].ErrorCode, api.None)
	if len(got) != 3 || len(got[0].Partitions) != 3 || got[0].Partitions[2].Leader != 1 {
		t.Fatalf("created: %+v", got[0])
	}
	code(t, "bad name", got[1].ErrorCode, api.InvalidTopicException)
	code(t, "internal", got[2].ErrorCode, api.UnknownTopicOrPartition)
	if !got[2].IsInternal {
		t.Error("__consumer_offsets is not internal")
	}
	code(t, "the first send", p.produce("t", 2, records(1, "a")).ErrorCode, api.None)
	// Older versions cannot say that they do not want it.
	code(t, "version 0", ask[*kmsg.MetadataResponse](p, 0, metadataFor("u")).Topics[0].ErrorCode, api.None)
}

func TestAutoCreationByManyAtOnce(t *testing.T) {
	b := startBroker(t, nil)
	const clients = 20
	req := metadataFor("t")
	req.AllowAutoTopicCreation = true
	peers, ids := make([]*peer, clients), make([]int32, clients)
	for i := range peers {
		peers[i] = b.dial()
	}
	for i, p := range peers {
		ids[i] = p.send(9, req)
	}
	for i, p := range peers {
		got := p.receive(ids[i], req).(*kmsg.MetadataResponse).Topics[0]
		if got.ErrorCode != 0 || len(got.Partitions) != 1 || got.Partitions[0].Leader != 1 {
			t.Fatalf("client %d: %+v", i, got)
		}
	}
}

func TestNoAutoCreation(t *testing.T) {
	b := startBroker(t, map[string]string{"auto.create.topics.enable": "false"})
	req := metadataFor("t")
	req.AllowAutoTopicCreation = true
	code(t, "disabled", ask[*kmsg.MetadataResponse](b.dial(), 9, req).Topics[0].ErrorCode, api.UnknownTopicOrPartition)
}

func TestCreateTopics(t *testing.T) {
	b := startBroker(t, nil)
	b.create("there", 1)
	p := b.dial()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	want := map[string]api.Code{}
	add := func(want_ api.Code, name string, partitions int32, factor int16, change func(*kmsg.CreateTopicsRequestTopic)) {
		q := kmsg.NewCreateTopicsRequestTopic()
		q.Topic, q.NumPartitions, q.ReplicationFactor = name, partitions, factor
		if change != nil {
			change(&q)
		}
		req.Topics = append(req.Topics, q)
		want[name] = want_
	}
	config := func(name, value string) func(*kmsg.CreateTopicsRequestTopic) {
		return func(q *kmsg.CreateTopicsRequestTopic) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = name, &value
			q.Configs = append(q.Configs, c)
		}
	}
	assign := func(replicas ...[]int32) func(*kmsg.CreateTopicsRequestTopic) {
		return func(q *kmsg.CreateTopicsRequestTopic) {
			for i, r := range replicas {
				a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
				a.Partition, a.Replicas = int32(i), r
				q.ReplicaAssignment = append(q.ReplicaAssignment, a)
			}
		}
	}
	add(api.None, "plain", 2, 1, nil)
	add(api.None, "defaults", -1, -1, nil)
	add(api.None, "configured", 1, 1, config("retention.ms", "1000"))
	add(api.None, "assigned", -1, -1, assign([]int32{1}, []int32{1}))
	add(api.TopicAlreadyExists, "there", 1, 1, nil)
	add(api.InvalidTopicException, "bad name", 1, 1, nil)
	add(api.InvalidTopicException, strings.Repeat("x", 250), 1, 1, nil)
	add(api.InvalidPartitions, "none", 0, 1, nil)
	add(api.InvalidReplicationFactor, "thrice", 1, 3, nil)
	add(api.InvalidConfig, "misconfigured", 1, 1, config("retention.ms", "soon"))
	add(api.InvalidConfig, "unknown setting", 1, 1, config("no.such.setting", "1"))
	add(api.InvalidConfig, "null", 1, 1, func(q *kmsg.CreateTopicsRequestTopic) {
		q.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms"}}
	})
	want["unknown setting"] = api.InvalidTopicException // the name counts first
	add(api.InvalidRequest, "both", 1, 1, assign([]int32{1}))
	add(api.InvalidReplicaAssignment, "elsewhere", -1, -1, assign([]int32{9}))
	add(api.InvalidReplicaAssignment, "nobody", -1, -1, assign([]int32{}))
	add(api.InvalidRequest, "twice", 1, 1, nil)
	add(api.InvalidRequest, "twice", 1, 1, nil)
	resp := ask[*kmsg.CreateTopicsResponse](p, 7, req)
	if len(resp.Topics) != len(want) {
		t.Fatalf("%d topics are answered, want %d", len(resp.Topics), len(want))
	}
	for _, got := range resp.Topics {
		if api.Code(got.ErrorCode) != want[got.Topic] {
			t.Errorf("%s: %v, want %v", got.Topic, api.Code(got.ErrorCode), want[got.Topic])
		}
		if (got.ErrorMessage == nil) != (got.ErrorCode == 0) {
			t.Errorf("%s: message %v", got.Topic, got.ErrorMessage)
		}
		if got.ErrorCode == 0 && (got.TopicID == [16]byte{} || got.ReplicationFactor != 1 || len(got.Configs) == 0) {
			t.Errorf("%s: %+v", got.Topic, got)
		}
		if got.Topic == "configured" && !hasConfig(got.Configs, "retention.ms", "1000", 1) {
			t.Errorf("configured: %+v", got.Configs)
		}
	}
	dry := kmsg.NewPtrCreateTopicsRequest()
	dry.ValidateOnly, dry.TimeoutMillis = true, 5000
	q := kmsg.NewCreateTopicsRequestTopic()
	q.Topic, q.NumPartitions, q.ReplicationFactor = "dry", 4, 1
	dry.Topics = append(dry.Topics, q)
	code(t, "validated", ask[*kmsg.CreateTopicsResponse](p, 5, dry).Topics[0].ErrorCode, api.None)
	no := metadataFor("dry")
	code(t, "not created", ask[*kmsg.MetadataResponse](p, 9, no).Topics[0].ErrorCode, api.UnknownTopicOrPartition)
}

func hasConfig(cs []kmsg.CreateTopicsResponseTopicConfig, name, value string, source int8) bool {
	for _, c := range cs {
		if c.Name == name {
			return c.Value != nil && *c.Value == value && c.Source == source
		}
	}
	return false
}

func TestDeleteTopics(t *testing.T) {
	b := startBroker(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		b.create(name, 1)
	}
	byID := b.create("d", 1)
	p := b.dial()
	p.produce("a", 0, records(1, "x"))

	byName := kmsg.NewPtrDeleteTopicsRequest()
	byName.TopicNames, byName.TimeoutMillis = []string{"a", "nowhere", "b", "b"}, 5000
	got := ask[*kmsg.DeleteTopicsResponse](p, 5, byName).Topics
	for i, want := range []api.Code{api.None, api.UnknownTopicOrPartition, api.InvalidRequest, api.InvalidRequest} {
		code(t, *got[i].Topic, got[i].ErrorCode, want)
	}
	ids := kmsg.NewPtrDeleteTopicsRequest()
	ids.TimeoutMillis = 5000
	ids.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: byID}, {TopicID: [16]byte{1}}, {Topic: kmsg.StringPtr("c"), TopicID: byID}, {}}
	got = ask[*kmsg.DeleteTopicsResponse](p, 6, ids).Topics
	for i, want := range []api.Code{api.None, api.UnknownTopicID, api.InvalidRequest, api.InvalidRequest} {
		code(t, "by id", got[i].ErrorCode, want)
	}
	if got[0].TopicID != byID || got[0].Topic == nil || *got[0].Topic != "d" {
		t.Fatalf("deleted by id: %+v", got[0])
	}
	left := map[string]bool{}
	for _, topic := range ask[*kmsg.MetadataResponse](p, 9, kmsg.NewPtrMetadataRequest()).Topics {
		left[*topic.Topic] = true
	}
	if len(left) != 2 || !left["b"] || !left["c"] {
		t.Fatalf("left: %v", left)
	}
	// A topic of the same name is another topic, and empty.
	b.create("a", 1)
	if got := ask[*kmsg.ListOffsetsResponse](p, 4, listOffsets("a", 0, -1)).Topics[0].Partitions[0]; got.Offset != 0 {
		t.Fatalf("the new topic ends at %d", got.Offset)
	}
}

func TestDeletionCanBeDisabled(t *testing.T) {
	b := startBroker(t, map[string]string{"delete.topic.enable": "false"})
	b.create("a", 1)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames, req.TimeoutMillis = []string{"a"}, 5000
	p := b.dial()
	code(t, "version 4", ask[*kmsg.DeleteTopicsResponse](p, 4, req).Topics[0].ErrorCode, api.TopicDeletionDisabled)
	code(t, "version 2", ask[*kmsg.DeleteTopicsResponse](p, 2, req).Topics[0].ErrorCode, api.InvalidRequest)
}
