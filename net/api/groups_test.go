package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// coordinate makes sure that there is a coordinator for groups.
func (b *broker) coordinate() {
	b.t.Helper()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = []string{"g"}
	resp := ask[*kmsg.FindCoordinatorResponse](b.dial(), 6, req)
	code(b.t, "FindCoordinator", resp.Coordinators[0].ErrorCode, api.None)
	list := kmsg.NewPtrListGroupsRequest()
	for range 10_000 {
		if ask[*kmsg.ListGroupsResponse](b.dial(), 5, list).ErrorCode != int16(api.CoordinatorLoadInProgress) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatal("the groups are never loaded")
}

// groupRequests are requests of each key of groups, for topic t with this id.
func groupRequests(id [16]byte) map[kmsg.Key]func(v int16) kmsg.Request {
	typ, protocol := "consumer", "range"
	return map[kmsg.Key]func(v int16) kmsg.Request{
		kmsg.JoinGroup: func(v int16) kmsg.Request { return joinRequest(fmt.Sprintf("join-%d", v), "") },
		kmsg.SyncGroup: func(v int16) kmsg.Request {
			req := kmsg.NewPtrSyncGroupRequest()
			req.Group, req.MemberID, req.ProtocolType, req.Protocol = "none", "m", &typ, &protocol
			return req
		},
		kmsg.Heartbeat: func(v int16) kmsg.Request {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Group, req.MemberID = "none", "m"
			return req
		},
		kmsg.LeaveGroup: func(v int16) kmsg.Request {
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group, req.MemberID = "none", "m"
			req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "m"}}
			return req
		},
		kmsg.OffsetCommit: func(v int16) kmsg.Request { return commitRequest("simple", id, 1, 7) },
		kmsg.OffsetFetch:  func(v int16) kmsg.Request { return offsetFetchRequest("simple", id, 0, 1) },
		kmsg.DescribeGroups: func(v int16) kmsg.Request {
			req := kmsg.NewPtrDescribeGroupsRequest()
			req.Groups, req.IncludeAuthorizedOperations = []string{"none"}, true
			return req
		},
		kmsg.ListGroups: func(v int16) kmsg.Request { return kmsg.NewPtrListGroupsRequest() },
		kmsg.DeleteGroups: func(v int16) kmsg.Request {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{"none"}
			return req
		},
		kmsg.OffsetDelete: func(v int16) kmsg.Request { return offsetDeleteRequest("none", 0) },
	}
}

// groupCodes is the error that these get; None for all other keys.
func groupCodes(key kmsg.Key, v int16) api.Code {
	switch {
	case key == kmsg.JoinGroup && v >= 4:
		return api.MemberIDRequired
	case key == kmsg.SyncGroup, key == kmsg.Heartbeat, key == kmsg.LeaveGroup:
		return api.UnknownMemberID
	case key == kmsg.DeleteGroups, key == kmsg.OffsetDelete, key == kmsg.DescribeGroups && v >= 6:
		return api.GroupIDNotFound
	}
	return api.None
}

func joinRequest(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, member, 10_000, 10_000
	req.ProtocolType = "consumer"
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", subscription("t")
	req.Protocols = append(req.Protocols, p)
	return req
}

func subscription(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

func commitRequest(group string, id [16]byte, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = "t", id
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, offset, 3, kmsg.StringPtr("note")
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func offsetFetchRequest(group string, id [16]byte, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = "t", partitions
	req.Topics = append(req.Topics, t)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.TopicID, gt.Partitions = "t", id, partitions
	g.Topics = append(g.Topics, gt)
	req.Groups = append(req.Groups, g)
	return req
}

func offsetDeleteRequest(group string, partition int32) *kmsg.OffsetDeleteRequest {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: partition}}}}
	return req
}

// TestOffsetsAreNotHere: no version takes an answer of who does not coordinate the group for one without offsets, also
// where it looks at the partitions alone.
func TestOffsetsAreNotHere(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 2)
	p := b.dial()
	for v := int16(1); v <= 10; v++ {
		resp := ask[*kmsg.OffsetFetchResponse](p, v, offsetFetchRequest("g", id, 0, 1))
		if v >= 8 {
			code(t, "group", resp.Groups[0].ErrorCode, api.NotCoordinator)
			continue
		}
		if v >= 2 {
			code(t, "group", resp.ErrorCode, api.NotCoordinator)
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("version %d: %+v", v, resp)
		}
		for _, got := range resp.Topics[0].Partitions {
			code(t, "partition", got.ErrorCode, api.NotCoordinator)
		}
	}
}

// TestCommitAndFetch: by every version, what is committed is what is fetched.
func TestCommitAndFetch(t *testing.T) {
	b := startBroker(t, map[string]string{"offset.metadata.max.bytes": "10"})
	id := b.create("t", 2)
	b.coordinate()
	p := b.dial()
	for v := int16(2); v <= 10; v++ {
		req := commitRequest("g", id, 1, int64(v)*100)
		code(t, "commit", ask[*kmsg.OffsetCommitResponse](p, v, req).Topics[0].Partitions[0].ErrorCode, api.None)
		resp := ask[*kmsg.OffsetFetchResponse](p, 5, offsetFetchRequest("g", id, 0, 1))
		none, got := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
		epoch := int32(-1)
		if v >= 6 {
			epoch = 3
		}
		if got.Offset != int64(v)*100 || got.LeaderEpoch != epoch || *got.Metadata != "note" || got.ErrorCode != 0 {
			t.Errorf("version %d: %+v", v, got)
		}
		if none.Offset != -1 || none.LeaderEpoch != -1 || *none.Metadata != "" || none.ErrorCode != 0 {
			t.Errorf("a partition without an offset: %+v", none)
		}
	}
	for v := int16(8); v <= 10; v++ {
		req := offsetFetchRequest("g", id, 1)
		req.Groups[0].Topics = nil // all
		other := offsetFetchRequest("h", id, 1).Groups[0]
		req.Groups = append(req.Groups, other)
		resp := ask[*kmsg.OffsetFetchResponse](p, v, req)
		if g := resp.Groups[0]; g.ErrorCode != 0 || len(g.Topics) != 1 || g.Topics[0].Partitions[0].Offset != 1000 || (v >= 10) != (g.Topics[0].TopicID == id) {
			t.Errorf("version %d, all: %+v", v, g)
		}
		if g := resp.Groups[1]; g.ErrorCode != 0 || g.Topics[0].Partitions[0].Offset != -1 {
			t.Errorf("version %d, another group: %+v", v, g)
		}
	}
	twice := offsetFetchRequest("g", id, 1)
	twice.Groups = append(twice.Groups, twice.Groups[0])
	if resp := ask[*kmsg.OffsetFetchResponse](p, 9, twice); len(resp.Groups) != 1 {
		t.Errorf("a group that is named twice: %+v", resp)
	}
	unknown := commitRequest("g", [16]byte{9}, 1, 5)
	code(t, "unknown topic id", ask[*kmsg.OffsetCommitResponse](p, 10, unknown).Topics[0].Partitions[0].ErrorCode, api.UnknownTopicID)
	missing := commitRequest("g", id, 7, 5)
	code(t, "unknown partition", ask[*kmsg.OffsetCommitResponse](p, 9, missing).Topics[0].Partitions[0].ErrorCode, api.UnknownTopicOrPartition)
	long := commitRequest("g", id, 1, 5)
	long.Topics[0].Partitions[0].Metadata = kmsg.StringPtr("longer than ten")
	code(t, "metadata", ask[*kmsg.OffsetCommitResponse](p, 9, long).Topics[0].Partitions[0].ErrorCode, api.OffsetMetadataTooLarge)
	old := commitRequest("new", id, 1, 5)
	old.Generation = 4
	code(t, "generation of no group", ask[*kmsg.OffsetCommitResponse](p, 9, old).Topics[0].Partitions[0].ErrorCode, api.IllegalGeneration)
}

// TestGroupByHand walks one member through its life.
func TestGroupByHand(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 2)
	b.coordinate()
	p := b.dial()
	short := joinRequest("g", "")
	short.SessionTimeoutMillis = 10
	code(t, "session timeout", ask[*kmsg.JoinGroupResponse](p, 9, short).ErrorCode, api.InvalidSessionTimeout)
	code(t, "group id", ask[*kmsg.JoinGroupResponse](p, 9, joinRequest("", "")).ErrorCode, api.InvalidGroupID)
	code(t, "unknown member", ask[*kmsg.JoinGroupResponse](p, 9, joinRequest("g", "x")).ErrorCode, api.UnknownMemberID)

	first := ask[*kmsg.JoinGroupResponse](p, 9, joinRequest("g", ""))
	code(t, "first join", first.ErrorCode, api.MemberIDRequired)
	j := ask[*kmsg.JoinGroupResponse](p, 9, joinRequest("g", first.MemberID))
	code(t, "second join", j.ErrorCode, api.None)
	if j.Generation != 1 || j.LeaderID != first.MemberID || *j.Protocol != "range" || len(j.Members) != 1 {
		t.Fatalf("joined: %+v", j)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = "g", j.MemberID, 1
	commit := commitRequest("g", id, 0, 1)
	commit.MemberID, commit.Generation = j.MemberID, 1
	code(t, "commit before sync", ask[*kmsg.OffsetCommitResponse](p, 9, commit).Topics[0].Partitions[0].ErrorCode, api.RebalanceInProgress)

	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = "g", j.MemberID, 1
	code(t, "sync without protocol", ask[*kmsg.SyncGroupResponse](p, 5, sync).ErrorCode, api.InconsistentGroupProtocol)
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: j.MemberID, MemberAssignment: []byte("mine")}}
	s := ask[*kmsg.SyncGroupResponse](p, 5, sync)
	if s.ErrorCode != 0 || string(s.MemberAssignment) != "mine" {
		t.Fatalf("synced: %+v", s)
	}
	code(t, "heartbeat", ask[*kmsg.HeartbeatResponse](p, 4, beat).ErrorCode, api.None)
	code(t, "commit", ask[*kmsg.OffsetCommitResponse](p, 9, commit).Topics[0].Partitions[0].ErrorCode, api.None)
	code(t, "commit of a stranger", ask[*kmsg.OffsetCommitResponse](p, 9, commitRequest("g", id, 0, 1)).Topics[0].Partitions[0].ErrorCode, api.UnknownMemberID)
	del := ask[*kmsg.OffsetDeleteResponse](p, 0, offsetDeleteRequest("g", 0))
	code(t, "delete an offset that is in use", del.Topics[0].Partitions[0].ErrorCode, api.GroupSubscribedToTopic)
	code(t, "delete an offset of no group", ask[*kmsg.OffsetDeleteResponse](p, 0, offsetDeleteRequest("", 0)).ErrorCode, api.InvalidGroupID)
	beat.Generation = 0
	code(t, "heartbeat of before", ask[*kmsg.HeartbeatResponse](p, 4, beat).ErrorCode, api.IllegalGeneration)

	list := kmsg.NewPtrListGroupsRequest()
	for states, want := range map[string]int{"stable": 1, "Empty": 0} {
		list.StatesFilter = []string{states}
		if r := ask[*kmsg.ListGroupsResponse](p, 5, list); len(r.Groups) != want {
			t.Errorf("groups in state %s: %+v", states, r)
		}
	}
	list.StatesFilter, list.TypesFilter = nil, []string{"consumer"}
	if r := ask[*kmsg.ListGroupsResponse](p, 5, list); len(r.Groups) != 0 {
		t.Errorf("groups of the newer type: %+v", r)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.Members = "g", []kmsg.LeaveGroupRequestMember{{MemberID: "x"}, {MemberID: j.MemberID}}
	l := ask[*kmsg.LeaveGroupResponse](p, 5, leave)
	code(t, "leave", l.ErrorCode, api.None)
	code(t, "leave of nobody", l.Members[0].ErrorCode, api.UnknownMemberID)
	code(t, "leave of a member", l.Members[1].ErrorCode, api.None)
	remove := kmsg.NewPtrDeleteGroupsRequest()
	remove.Groups = []string{"none"}
	if r := ask[*kmsg.DeleteGroupsResponse](p, 3, remove).Groups[0]; api.Code(r.ErrorCode) != api.GroupIDNotFound || r.ErrorMessage == nil {
		t.Errorf("no group deleted: %+v", r)
	}
	remove.Groups = []string{"g", "g"}
	if r := ask[*kmsg.DeleteGroupsResponse](p, 2, remove); len(r.Groups) != 1 || r.Groups[0].ErrorCode != 0 {
		t.Errorf("deleted: %+v", r)
	}
}
