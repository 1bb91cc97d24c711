package api_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// TestAlterPartition: version 2 names the brokers of the set alone, version 3 with their registrations (KIP-903). A set
// as it is changes nothing; one that is against an older state, or names who is no replica or not registered so, is refused.
func TestAlterPartition(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	self, _ := b.node.Image().Broker(1)
	at := b.node.Image().Topics["t"].Partitions[0]
	alter := func(version int16, leaderEpoch, partitionEpoch int32, members ...kmsg.AlterPartitionRequestTopicPartitionNewEpochISR) kmsg.AlterPartitionResponseTopicPartition {
		t.Helper()
		req := kmsg.NewPtrAlterPartitionRequest()
		req.BrokerID, req.BrokerEpoch = 1, self.Epoch
		topic := kmsg.NewAlterPartitionRequestTopic()
		topic.TopicID = id
		q := kmsg.NewAlterPartitionRequestTopicPartition()
		q.LeaderEpoch, q.PartitionEpoch = leaderEpoch, partitionEpoch
		for _, m := range members {
			q.NewISR = append(q.NewISR, m.BrokerID)
		}
		if version >= 3 {
			q.NewISR, q.NewEpochISR = nil, members
		}
		topic.Partitions = append(topic.Partitions, q)
		req.Topics = append(req.Topics, topic)
		resp := ask[*kmsg.AlterPartitionResponse](p, version, req)
		if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		return resp.Topics[0].Partitions[0]
	}
	member := func(id int32, epoch int64) kmsg.AlterPartitionRequestTopicPartitionNewEpochISR {
		m := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		m.BrokerID, m.BrokerEpoch = id, epoch
		return m
	}
	for _, version := range []int16{2, 3} {
		own := member(1, self.Epoch)
		if r := alter(version, at.LeaderEpoch, at.ZkVersion, own); r.ErrorCode != 0 || r.LeaderID != 1 || r.LeaderEpoch != at.LeaderEpoch || len(r.ISR) != 1 || r.ISR[0] != 1 {
			t.Errorf("version %d, the set as it is: %+v", version, r)
		}
		if r := alter(version, at.LeaderEpoch+1, at.ZkVersion, own); api.Code(r.ErrorCode) != api.FencedLeaderEpoch {
			t.Errorf("version %d, another leader epoch: %+v", version, r)
		}
		if r := alter(version, at.LeaderEpoch, at.ZkVersion+1, own); api.Code(r.ErrorCode) != api.InvalidUpdateVersion {
			t.Errorf("version %d, another state: %+v", version, r)
		}
		if r := alter(version, at.LeaderEpoch, at.ZkVersion, own, member(7, 1)); api.Code(r.ErrorCode) != api.InvalidRequest {
			t.Errorf("version %d, who is no replica: %+v", version, r)
		}
	}
}
