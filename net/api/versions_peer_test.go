package api_test

import (
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// betweenBrokers are requests of a controller and of brokers to a controller, of an epoch before this broker's: they are
// understood and refused.
func betweenBrokers(requests map[kmsg.Key]func(v int16) kmsg.Request) {
	const controllerEpoch, olderEpoch = 1 << 20, 1
	requests[kmsg.LeaderAndISR] = func(int16) kmsg.Request {
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, controllerEpoch, olderEpoch
		return req
	}
	requests[kmsg.StopReplica] = func(int16) kmsg.Request {
		req := kmsg.NewPtrStopReplicaRequest()
		req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, controllerEpoch, olderEpoch
		return req
	}
	requests[kmsg.UpdateMetadata] = func(int16) kmsg.Request {
		req := kmsg.NewPtrUpdateMetadataRequest()
		req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, controllerEpoch, olderEpoch
		return req
	}
	requests[kmsg.ControlledShutdown] = func(int16) kmsg.Request {
		req := kmsg.NewPtrControlledShutdownRequest()
		req.BrokerID, req.BrokerEpoch = 1, olderEpoch
		return req
	}
	requests[kmsg.AlterPartition] = func(int16) kmsg.Request {
		req := kmsg.NewPtrAlterPartitionRequest()
		req.BrokerID, req.BrokerEpoch = 1, olderEpoch
		return req
	}
}

// peerCodes is what the requests of betweenBrokers are answered with.
func peerCodes(key kmsg.Key) (want api.Code, ok bool) {
	switch key {
	case kmsg.LeaderAndISR, kmsg.StopReplica, kmsg.UpdateMetadata, kmsg.ControlledShutdown, kmsg.AlterPartition:
		return api.StaleBrokerEpoch, true
	}
	return api.None, false
}

// TestStrangersAreFenced: who is not the newest controller, or speaks to an earlier life of the broker, changes
// nothing.
func TestStrangersAreFenced(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	broker, _ := b.node.Image().Broker(1)
	lead := func(controllerEpoch int32, brokerEpoch int64) api.Code {
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 7, controllerEpoch, brokerEpoch
		q := kmsg.NewLeaderAndISRRequestTopicState()
		q.Topic, q.TopicID = "t", id
		s := kmsg.NewLeaderAndISRRequestTopicPartition()
		s.ControllerEpoch, s.Leader, s.LeaderEpoch, s.ISR, s.Replicas = controllerEpoch, -1, 9, []int32{1}, []int32{1}
		q.PartitionStates = append(q.PartitionStates, s)
		req.TopicStates = append(req.TopicStates, q)
		return api.Code(ask[*kmsg.LeaderAndISRResponse](p, 7, req).ErrorCode)
	}
	if got := lead(0, broker.Epoch); got != api.StaleControllerEpoch {
		t.Errorf("an older controller: %v", got)
	}
	if got := lead(100, broker.Epoch-1); got != api.StaleBrokerEpoch {
		t.Errorf("another life of the broker: %v", got)
	}
	if got := api.Code(p.produce("t", 0, records(1000, "a")).ErrorCode); got != api.None {
		t.Errorf("the partition is not led any more: %v", got)
	}
	if got := lead(100, broker.Epoch); got != api.None {
		t.Errorf("the newest controller: %v", got)
	}
	if got := api.Code(p.produce("t", 0, records(1000, "a")).ErrorCode); got != api.NotLeaderOrFollower {
		t.Errorf("a partition without a leader takes records: %v", got)
	}
}

// TestHostileWordsOfAController: whoever knows the epochs can speak as the controller does; what makes no sense changes
// nothing and harms nobody.
func TestHostileWordsOfAController(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	broker, _ := b.node.Image().Broker(1)
	const epoch = 100
	many := make([]int32, 10_000)
	for name, tp := range map[string]struct {
		topic     string
		partition int32
	}{
		"a path": {"../../x", 0}, "no name": {"", 0}, "a dot": {"..", 0}, "negative": {"u", -1}, "least": {"u", math.MinInt32},
		"long": {strings.Repeat("x", 30_000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			lead := kmsg.NewPtrLeaderAndISRRequest()
			lead.ControllerID, lead.ControllerEpoch, lead.BrokerEpoch = 7, epoch, broker.Epoch
			topic := kmsg.NewLeaderAndISRRequestTopicState()
			topic.Topic, topic.TopicID = tp.topic, [16]byte{9}
			part := kmsg.NewLeaderAndISRRequestTopicPartition()
			part.Partition, part.Leader, part.ISR, part.Replicas = tp.partition, 1, many, many
			topic.PartitionStates = append(topic.PartitionStates, part, part)
			lead.TopicStates = append(lead.TopicStates, topic)
			ledAny := false
			for _, rt := range ask[*kmsg.LeaderAndISRResponse](p, 7, lead).Topics {
				for _, rp := range rt.Partitions {
					ledAny = ledAny || rp.ErrorCode == 0
				}
			}
			if ledAny {
				t.Error("it is led")
			}

			update := kmsg.NewPtrUpdateMetadataRequest()
			update.ControllerID, update.ControllerEpoch, update.BrokerEpoch = 7, epoch, broker.Epoch
			known := kmsg.NewUpdateMetadataRequestTopicState()
			known.Topic, known.TopicID = "t", id
			wild := kmsg.NewUpdateMetadataRequestTopicPartition()
			for _, wild.Partition = range []int32{tp.partition, -1, math.MaxInt32} {
				wild.Leader = -7
				known.PartitionStates = append(known.PartitionStates, wild)
			}
			update.TopicStates = append(update.TopicStates, known)
			ask[*kmsg.UpdateMetadataResponse](p, 8, update)

			stop := kmsg.NewPtrStopReplicaRequest()
			stop.ControllerID, stop.ControllerEpoch, stop.BrokerEpoch = 7, epoch, broker.Epoch
			st := kmsg.NewStopReplicaRequestTopic()
			st.Topic = tp.topic
			sp := kmsg.NewStopReplicaRequestTopicPartitionState()
			sp.Partition, sp.Delete = tp.partition, true
			st.PartitionStates = append(st.PartitionStates, sp, sp)
			stop.Topics = append(stop.Topics, st)
			ask[*kmsg.StopReplicaResponse](p, 4, stop)
		})
	}
	if got := api.Code(p.produce("t", 0, records(1000, "a")).ErrorCode); got != api.None {
		t.Errorf("the partition that was there: %v", got)
	}
}
