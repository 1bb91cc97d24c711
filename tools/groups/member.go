// Package groups is group members that speak the protocol themselves, against the real broker process: what
// many groups cost, and what becomes of a group while the broker stands still.
package groups

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Member is one member of a group that speaks the protocol itself: it costs a connection and a goroutine,
// not a whole client, so that a test can have hundreds.
type Member struct {
	Group     string
	SessionMs int32
	nc        net.Conn
	next      int32

	ID         string
	Generation int32
	Leader     bool
	Partitions []int32
}

// Dial connects a member.
func Dial(addr, group string) (*Member, error) {
	nc, err := net.DialTimeout("tcp", addr, 60*time.Second)
	if err != nil {
		return nil, err
	}
	return &Member{Group: group, SessionMs: 10_000, nc: nc}, nil
}

// Close ends the connection without leaving the group.
func (m *Member) Close() { m.nc.Close() }

// ask sends a request and waits for its answer.
func ask[R kmsg.Response](m *Member, version int16, req kmsg.Request) (R, error) {
	var none R
	req.SetVersion(version)
	m.next++
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("member"))
	_ = m.nc.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := m.nc.Write(f.AppendRequest(nil, req, m.next)); err != nil {
		return none, err
	}
	var size [4]byte
	if _, err := io.ReadFull(m.nc, size[:]); err != nil {
		return none, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(m.nc, body); err != nil {
		return none, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	body = body[4:]
	if resp.IsFlexible() {
		body = body[1:] // header tags: none
	}
	if err := resp.ReadFrom(body); err != nil {
		return none, err
	}
	return resp.(R), nil
}

// Kafka's codes that a member acts on.
const (
	coordinatorLoading  = 14
	unknownMember       = 25
	illegalGeneration   = 22
	rebalanceInProgress = 27
	memberIDRequired    = 79
)

// Join joins the group until the member has its partitions: a leader deals out count of them.
func (m *Member) Join(count int32) error {
	for {
		code, err := m.joinOnce(count)
		switch {
		case err != nil:
			return err
		case code == 0:
			return nil
		case code == unknownMember || code == illegalGeneration:
			m.ID = ""
		case code == rebalanceInProgress || code == memberIDRequired:
		case code == coordinatorLoading:
			time.Sleep(10 * time.Millisecond)
		default:
			return fmt.Errorf("join: code %d", code)
		}
	}
}

func (m *Member) joinOnce(count int32) (code int16, err error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = m.Group, m.ID, m.SessionMs, 30_000
	req.ProtocolType = "consumer"
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{"t"}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	j, err := ask[*kmsg.JoinGroupResponse](m, 7, req)
	if err != nil {
		return 0, err
	}
	if j.ErrorCode != 0 {
		if j.ErrorCode == memberIDRequired {
			m.ID = j.MemberID
		}
		return j.ErrorCode, nil
	}
	m.ID, m.Generation, m.Leader = j.MemberID, j.Generation, j.LeaderID == j.MemberID
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = m.Group, m.ID, m.Generation
	if m.Leader {
		sync.GroupAssignment = deal(j.Members, count)
	}
	s, err := ask[*kmsg.SyncGroupResponse](m, 3, sync)
	if err != nil || s.ErrorCode != 0 {
		if s != nil {
			return s.ErrorCode, err
		}
		return 0, err
	}
	return 0, m.take(s.MemberAssignment)
}

// deal gives each member its share of the partitions.
func deal(members []kmsg.JoinGroupResponseMember, count int32) []kmsg.SyncGroupRequestGroupAssignment {
	out := make([]kmsg.SyncGroupRequestGroupAssignment, len(members))
	for i, m := range members {
		a := kmsg.NewConsumerMemberAssignment()
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = "t"
		for p := int32(i); p < count; p += int32(len(members)) {
			t.Partitions = append(t.Partitions, p)
		}
		a.Topics = append(a.Topics, t)
		out[i].MemberID, out[i].MemberAssignment = m.MemberID, a.AppendTo(nil)
	}
	return out
}

func (m *Member) take(p []byte) error {
	m.Partitions = nil
	if len(p) == 0 {
		return nil
	}
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(p); err != nil {
		return err
	}
	for _, t := range a.Topics {
		m.Partitions = append(m.Partitions, t.Partitions...)
	}
	return nil
}

// Heartbeat says whether the member must join again.
func (m *Member) Heartbeat() (rejoin bool, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = m.Group, m.ID, m.Generation
	r, err := ask[*kmsg.HeartbeatResponse](m, 3, req)
	if err != nil {
		return false, err
	}
	if r.ErrorCode == unknownMember || r.ErrorCode == illegalGeneration {
		m.ID = ""
	}
	return r.ErrorCode != 0, nil
}
