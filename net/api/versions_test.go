package api_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// served is what must be served, by the design.
var served = map[kmsg.Key][2]int16{
	kmsg.Produce: {0, 13}, kmsg.Fetch: {4, 18}, kmsg.ListOffsets: {1, 11}, kmsg.Metadata: {0, 13},
	kmsg.FindCoordinator: {0, 6}, kmsg.ApiVersions: {0, 5}, kmsg.CreateTopics: {2, 7}, kmsg.DeleteTopics: {1, 6},
	kmsg.InitProducerID: {0, 5}, kmsg.OffsetForLeaderEpoch: {2, 4}, kmsg.DescribeConfigs: {0, 4},
	kmsg.DescribeCluster: {0, 2}, kmsg.DescribeTopicPartitions: {0, 0},
	kmsg.OffsetCommit: {2, 10}, kmsg.OffsetFetch: {1, 10}, kmsg.JoinGroup: {0, 9}, kmsg.Heartbeat: {0, 4}, kmsg.LeaveGroup: {0, 5},
	kmsg.SyncGroup: {0, 5}, kmsg.DescribeGroups: {0, 6}, kmsg.ListGroups: {0, 5}, kmsg.DeleteGroups: {0, 3}, kmsg.OffsetDelete: {0, 0},
	kmsg.CreatePartitions: {0, 3}, kmsg.DeleteRecords: {0, 2}, kmsg.DescribeLogDirs: {0, 5},
	kmsg.AlterConfigs: {0, 2}, kmsg.IncrementalAlterConfigs: {0, 1},
	kmsg.LeaderAndISR: {5, 7}, kmsg.StopReplica: {3, 4}, kmsg.UpdateMetadata: {7, 8}, kmsg.ControlledShutdown: {2, 3}, kmsg.AlterPartition: {2, 3},
	kmsg.DescribeProducers: {0, 0}, kmsg.ElectLeaders: {0, 2}, kmsg.ListPartitionReassignments: {0, 0},
}

func apiVersions() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "platter-test", "1.0"
	return req
}

func TestAdvertisedVersions(t *testing.T) {
	b := startBroker(t, nil)
	p := b.dial()
	for v := int16(0); v <= 5; v++ {
		resp := ask[*kmsg.ApiVersionsResponse](p, v, apiVersions())
		code(t, "ApiVersions", resp.ErrorCode, api.None)
		got := map[kmsg.Key][2]int16{}
		for _, k := range resp.ApiKeys {
			got[kmsg.Key(k.ApiKey)] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		if fmt.Sprint(got) != fmt.Sprint(served) {
			t.Fatalf("version %d: advertised are\n%v, due are\n%v", v, got, served)
		}
	}
}

// TestEveryVersionOfEveryKey asks each advertised key in each version, and understands every byte of the
// answer.
func TestEveryVersionOfEveryKey(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 2)
	batch := records(1000, "a", "b")
	requests := map[kmsg.Key]func(v int16) kmsg.Request{
		kmsg.Produce:     func(int16) kmsg.Request { return produceRequest("t", id, 1, 1, batch) },
		kmsg.Fetch:       func(int16) kmsg.Request { return fetchRequest("t", id, 1, 0) },
		kmsg.ListOffsets: func(int16) kmsg.Request { return listOffsets("t", 1, -1) },
		kmsg.ApiVersions: func(int16) kmsg.Request { return apiVersions() },
		kmsg.Metadata: func(v int16) kmsg.Request {
			req := kmsg.NewPtrMetadataRequest()
			q := kmsg.NewMetadataRequestTopic()
			q.Topic = kmsg.StringPtr("t")
			req.Topics = append(req.Topics, q)
			req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
			return req
		},
		kmsg.FindCoordinator: func(int16) kmsg.Request {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g", "h"}
			return req
		},
		kmsg.CreateTopics: func(v int16) kmsg.Request {
			req := kmsg.NewPtrCreateTopicsRequest()
			q := kmsg.NewCreateTopicsRequestTopic()
			q.Topic, q.NumPartitions, q.ReplicationFactor = fmt.Sprintf("created-%d", v), 1, 1
			req.Topics, req.TimeoutMillis = append(req.Topics, q), 5000
			return req
		},
		kmsg.DeleteTopics: func(v int16) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			name := fmt.Sprintf("created-%d", v+1)
			q := kmsg.NewDeleteTopicsRequestTopic()
			q.Topic = &name
			req.Topics, req.TopicNames, req.TimeoutMillis = append(req.Topics, q), []string{name}, 5000
			return req
		},
		kmsg.InitProducerID: func(int16) kmsg.Request { return kmsg.NewPtrInitProducerIDRequest() },
		kmsg.OffsetForLeaderEpoch: func(int16) kmsg.Request {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			q := kmsg.NewOffsetForLeaderEpochRequestTopic()
			q.Topic = "t"
			qp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			qp.CurrentLeaderEpoch = -1
			q.Partitions = append(q.Partitions, qp)
			req.ReplicaID, req.Topics = -1, append(req.Topics, q)
			return req
		},
		kmsg.DescribeConfigs: func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeConfigsRequest()
			for typ, name := range map[kmsg.ConfigResourceType]string{kmsg.ConfigResourceTypeTopic: "t", kmsg.ConfigResourceTypeBroker: "1"} {
				q := kmsg.NewDescribeConfigsRequestResource()
				q.ResourceType, q.ResourceName = typ, name
				req.Resources = append(req.Resources, q)
			}
			req.IncludeSynonyms, req.IncludeDocumentation = true, true
			return req
		},
		kmsg.DescribeCluster: func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.EndpointType, req.IncludeClusterAuthorizedOperations = 1, true
			return req
		},
		kmsg.DescribeTopicPartitions: func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeTopicPartitionsRequest()
			req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "nowhere"}, {Topic: "t"}}
			req.ResponsePartitionLimit = 1
			return req
		},
	}
	maps.Copy(requests, groupRequests(id))
	b.coordinate()
	administration(requests)
	betweenBrokers(requests)
	for key, r := range served {
		for v := r[0]; v <= r[1]; v++ {
			t.Run(fmt.Sprintf("%s-%d", key.Name(), v), func(t *testing.T) {
				p := b.dialFor(t)
				resp := p.receive(p.send(v, requests[key](v)), requestOf(key, v))
				want := groupCodes(key, v)
				if refused, ok := peerCodes(key); ok {
					want = refused
				}
				if key == kmsg.Produce && v < 3 {
					want = api.UnsupportedVersion
				}
				for _, got := range codesOf(resp) {
					if api.Code(got) != want && got != 0 && api.Code(got) != api.UnknownTopicOrPartition {
						t.Fatalf("%v, want %v", api.Code(got), want)
					}
				}
			})
		}
	}
}

func requestOf(key kmsg.Key, v int16) kmsg.Request {
	req := kmsg.RequestForKey(int16(key))
	req.SetVersion(v)
	return req
}

// codesOf are the error codes of an answer.
func codesOf(resp kmsg.Response) (codes []int16) {
	add := func(c int16) { codes = append(codes, c) }
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		add(r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.FetchResponse:
		add(r.ErrorCode)
		add(r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.ListOffsetsResponse:
		add(r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.MetadataResponse:
		add(r.Topics[0].ErrorCode)
	case *kmsg.FindCoordinatorResponse:
		add(r.ErrorCode)
	case *kmsg.ApiVersionsResponse:
		add(r.ErrorCode)
	case *kmsg.CreateTopicsResponse:
		add(r.Topics[0].ErrorCode)
	case *kmsg.DeleteTopicsResponse:
		add(r.Topics[0].ErrorCode)
	case *kmsg.InitProducerIDResponse:
		add(r.ErrorCode)
	case *kmsg.OffsetForLeaderEpochResponse:
		add(r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.DescribeConfigsResponse:
		for _, res := range r.Resources {
			add(res.ErrorCode)
		}
	case *kmsg.DescribeClusterResponse:
		add(r.ErrorCode)
	case *kmsg.DescribeTopicPartitionsResponse:
		for _, topic := range r.Topics {
			add(topic.ErrorCode)
		}
	default:
		return administrationCodes(resp)
	}
	return codes
}

func TestUnknownApiVersionsVersion(t *testing.T) {
	b := startBroker(t, nil)
	for _, v := range []int16{6, 99, math.MaxInt16} {
		p := b.dial()
		f := kmsg.NewRequestFormatter()
		frame := f.AppendRequest(nil, apiVersions(), 7)
		frame[6], frame[7] = byte(v>>8), byte(v)
		p.nc.Write(frame)
		resp := p.receive(7, requestOf(kmsg.ApiVersions, 0)).(*kmsg.ApiVersionsResponse)
		code(t, "ApiVersions", resp.ErrorCode, api.UnsupportedVersion)
		if k := resp.ApiKeys; len(k) != 1 || k[0].ApiKey != 18 || k[0].MaxVersion != 5 {
			t.Fatalf("advertised: %v", k)
		}
		// The client tries again, on the same connection.
		ask[*kmsg.ApiVersionsResponse](p, 0, apiVersions())
	}
}

func TestClientSoftwareIsChecked(t *testing.T) {
	p := startBroker(t, nil).dial()
	for name, want := range map[string]api.Code{"a": api.None, "a-b.c": api.None, "": api.InvalidRequest, "-a": api.InvalidRequest, "a b": api.InvalidRequest, "a\n": api.InvalidRequest} {
		req := apiVersions()
		req.ClientSoftwareName = name
		code(t, name, ask[*kmsg.ApiVersionsResponse](p, 3, req).ErrorCode, want)
	}
}
