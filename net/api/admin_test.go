package api_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

func TestFindCoordinator(t *testing.T) {
	b := startBroker(t, nil)
	p := b.dial()
	one := kmsg.NewPtrFindCoordinatorRequest()
	one.CoordinatorKey = "g"
	got := ask[*kmsg.FindCoordinatorResponse](p, 3, one)
	if got.ErrorCode != 0 || got.NodeID != 1 || got.Host != "127.0.0.1" || fmt.Sprintf("%s:%d", got.Host, got.Port) != b.addr {
		t.Fatalf("%+v", got)
	}
	many := kmsg.NewPtrFindCoordinatorRequest()
	many.CoordinatorKeys = []string{"a", "b"}
	if got := ask[*kmsg.FindCoordinatorResponse](p, 6, many).Coordinators; len(got) != 2 || got[1].Key != "b" || got[1].NodeID != 1 {
		t.Fatalf("%+v", got)
	}
	many.CoordinatorType = 2
	code(t, "share groups", ask[*kmsg.FindCoordinatorResponse](p, 6, many).Coordinators[0].ErrorCode, api.InvalidRequest)
}

func describe(typ kmsg.ConfigResourceType, name string, settings ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	q := kmsg.NewDescribeConfigsRequestResource()
	q.ResourceType, q.ResourceName, q.ConfigNames = typ, name, settings
	req.Resources = append(req.Resources, q)
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	return req
}

func TestDescribeConfigs(t *testing.T) {
	b := startBroker(t, map[string]string{"log.retention.ms": "5000"})
	b.create("t", 1, "segment.bytes", "1048576")
	p := b.dial()
	all := ask[*kmsg.DescribeConfigsResponse](p, 4, describe(kmsg.ConfigResourceTypeTopic, "t")).Resources[0]
	code(t, "topic", all.ErrorCode, api.None)
	byName := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, c := range all.Configs {
		byName[c.Name] = c
	}
	for name, want := range map[string]string{
		// value, source, read only, default (which only version 0 tells), type, synonyms
		"segment.bytes": "1048576 1 false false 3 [segment.bytes=1048576:1 log.segment.bytes=1073741824:5]",
		"retention.ms":  "5000 4 false false 5 [log.retention.ms=5000:4 log.retention.hours=168:5]",
	} {
		c := byName[name]
		got := fmt.Sprintf("%s %d %v %v %d [", *c.Value, c.Source, c.ReadOnly, c.IsDefault, c.ConfigType)
		for i, s := range c.ConfigSynonyms {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%s=%s:%d", s.Name, *s.Value, s.Source)
		}
		got += "]"
		if got[:min(len(want), len(got))] != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if c.Documentation == nil || *c.Documentation == "" {
			t.Errorf("%s has no documentation", name)
		}
	}
	some := ask[*kmsg.DescribeConfigsResponse](p, 1, describe(kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "no.such.setting")).Resources[0]
	if len(some.Configs) != 1 || some.Configs[0].Name != "retention.ms" {
		t.Fatalf("two names asked for, one of them unknown: %+v", some.Configs)
	}
	broker := ask[*kmsg.DescribeConfigsResponse](p, 4, describe(kmsg.ConfigResourceTypeBroker, "1")).Resources[0]
	if broker.ErrorCode != 0 || len(broker.Configs) < 50 {
		t.Fatalf("broker: %v, %d settings", api.Code(broker.ErrorCode), len(broker.Configs))
	}
	for _, c := range broker.Configs {
		if c.IsSensitive && c.Value != nil {
			t.Errorf("%s is sensitive and told", c.Name)
		}
	}
	for _, c := range []struct {
		typ  kmsg.ConfigResourceType
		name string
		code api.Code
	}{
		{kmsg.ConfigResourceTypeTopic, "nowhere", api.UnknownTopicOrPartition},
		{kmsg.ConfigResourceTypeTopic, "bad name", api.InvalidTopicException},
		{kmsg.ConfigResourceTypeBroker, "", api.None},
		{kmsg.ConfigResourceTypeBroker, "2", api.InvalidRequest},
		{kmsg.ConfigResourceTypeBroker, "one", api.InvalidRequest},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", api.InvalidRequest},
		{kmsg.ConfigResourceType(77), "x", api.InvalidRequest},
	} {
		got := ask[*kmsg.DescribeConfigsResponse](p, 4, describe(c.typ, c.name)).Resources[0]
		code(t, fmt.Sprintf("%v %q", c.typ, c.name), got.ErrorCode, c.code)
	}
}

func TestDescribeCluster(t *testing.T) {
	b := startBroker(t, nil)
	p := b.dial()
	req := kmsg.NewPtrDescribeClusterRequest()
	req.EndpointType = 1
	got := ask[*kmsg.DescribeClusterResponse](p, 2, req)
	if got.ErrorCode != 0 || got.ControllerID != 1 || got.ClusterID == "" || len(got.Brokers) != 1 || got.EndpointType != 1 || got.ClusterAuthorizedOperations != -1<<31 {
		t.Fatalf("%+v", got)
	}
	for typ, want := range map[int8]api.Code{2: api.MismatchedEndpointType, 3: api.UnsupportedEndpointType} {
		req.EndpointType = typ
		code(t, "endpoint type", ask[*kmsg.DescribeClusterResponse](p, 1, req).ErrorCode, want)
	}
}

func TestDescribeTopicPartitions(t *testing.T) {
	b := startBroker(t, nil)
	b.create("a", 3)
	b.create("b", 2)
	p := b.dial()
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 2
	var got []string
	for range 10 {
		resp := ask[*kmsg.DescribeTopicPartitionsResponse](p, 0, req)
		for _, topic := range resp.Topics {
			for _, part := range topic.Partitions {
				got = append(got, fmt.Sprintf("%s-%d", *topic.Topic, part.Partition))
			}
		}
		if resp.NextCursor == nil {
			break
		}
		next := kmsg.NewDescribeTopicPartitionsRequestCursor()
		next.Topic, next.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &next
	}
	if want := "[a-0 a-1 a-2 b-0 b-1]"; fmt.Sprint(got) != want {
		t.Fatalf("pages of two: %v, want %s", got, want)
	}
}
