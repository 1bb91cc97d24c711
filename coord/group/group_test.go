package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"platter/coord/group/core"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
)

// TestPartitionOf: the hash is Java's, over UTF-16.
func TestPartitionOf(t *testing.T) {
	for group, want := range map[string]int32{
		"": 0, "a": 97 % 50, "my-group": 12, "console-consumer-1": 24, "polygenelubricants": 0, "Ünïcödé": 31, "𝄞": 44,
	} {
		if got := PartitionOf(group, 50); got != want {
			t.Errorf("%q is of partition %d, want %d", group, got, want)
		}
	}
}

// TestReplicasOfTopic: the topic gets as many replicas as are set, or groups wait; by default as many as there are brokers.
func TestReplicasOfTopic(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	if len(b.created) != 1 || b.created[0] != 1 {
		t.Errorf("by default: %d replicas with one broker, want 1", b.created)
	}
	b = newBroker(t, clock.Real{}, map[string]string{"offsets.topic.replication.factor": "3"})
	b.creatable = 1
	if _, err := b.co.Leader(context.Background(), "g"); !errors.Is(err, ErrNotAvailable) {
		t.Errorf("three replicas and one broker: %v", err)
	}
	b.creatable = 3
	b.find("g")
	if len(b.created) != 1 || b.created[0] != 3 {
		t.Errorf("three are set: %d replicas", b.created)
	}
}

// TestRestart: offsets and members are there after a restart, and a member goes on as if nothing were.
func TestRestart(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	if _, err := b.co.Fetch("g", nil); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("before there is a topic: %v", err)
	}
	b.find("g")
	for i := range int64(100) {
		must(t, b.commit("simple", "t", i))
	}
	must(t, b.commit("simple", "u", 7))
	j := b.form("g")
	b.restart()
	b.wantOffset("simple", "t", 99)
	b.wantOffset("simple", "u", 7)
	b.wantOffset("simple", "v", -1)
	must(t, b.co.Heartbeat("g", j.MemberID, nil, j.Generation))
	s := b.co.Sync(context.Background(), "g", core.SyncRequest{MemberID: j.MemberID, Generation: 1})
	if s.Err != nil || string(s.Assignment) != "all" {
		t.Errorf("assignment after a restart: %q %v", s.Assignment, s.Err)
	}
	d, err := b.co.Describe("g")
	if err != nil || d.State != core.Stable || len(d.Members) != 1 || string(d.Members[0].Metadata) != "x" {
		t.Errorf("described: %+v %v", d, err)
	}
	listed, err := b.co.List()
	if err != nil || len(listed) != 2 {
		t.Errorf("listed: %v %v", listed, err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// TestPeerGone: a member whose connection ends while it waits does not hold the group up for longer than
// its session.
func TestPeerGone(t *testing.T) {
	v := virtual()
	b := newBroker(t, v, nil)
	b.lead()
	b.ready()
	j := b.form("g")
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan core.JoinReply)
	go func() { waiting <- b.co.Join(ctx, "g", joinRequest("")) }()
	for err := error(nil); !errors.Is(err, core.ErrRebalanceInProgress); {
		err = b.co.Heartbeat("g", j.MemberID, nil, 1)
	}
	cancel()
	<-waiting
	v.Advance(9999 * time.Millisecond)
	if err := b.co.Heartbeat("g", j.MemberID, nil, 1); !errors.Is(err, core.ErrRebalanceInProgress) {
		t.Fatalf("heartbeat: %v", err)
	}
	v.Advance(time.Second)
	d, err := b.co.Describe("g")
	if err != nil || len(d.Members) > 1 {
		t.Errorf("after its session: %+v %v", d, err)
	}
}

// TestExpiry: a group without members loses its offsets after their time, for good; one with members does
// not.
func TestExpiry(t *testing.T) {
	v := virtual()
	b := newBroker(t, v, map[string]string{"offsets.retention.minutes": "1", "group.max.session.timeout.ms": "1800000"})
	b.lead()
	b.ready()
	must(t, b.commit("simple", "t", 5))
	r := joinRequest("")
	r.SessionTimeoutMs = 1_000_000
	j := b.co.Join(context.Background(), "live", r)
	must(t, j.Err)
	must(t, b.co.Sync(context.Background(), "live", core.SyncRequest{MemberID: j.MemberID, Generation: 1}).Err)
	must(t, b.co.Commit(&CommitRequest{Group: "live", MemberID: j.MemberID, Generation: 1, RetentionMs: -1,
		Offsets: []Committed{{TP: store.TP{Topic: "t"}, Offset: core.Offset{Offset: 9}}}}))
	v.Advance(59 * time.Second)
	b.co.ExpireNow()
	b.wantOffset("simple", "t", 5)
	v.Advance(2 * time.Second)
	b.co.ExpireNow()
	b.wantOffset("simple", "t", -1)
	b.wantOffset("live", "t", 9)
	b.restart()
	b.wantOffset("simple", "t", -1)
	b.wantOffset("live", "t", 9)
	_, err := b.co.Leave("live", []core.Leaving{{MemberID: j.MemberID}})
	must(t, err)
	v.Advance(61 * time.Second)
	b.co.ExpireNow()
	if listed, _ := b.co.List(); len(listed) != 0 {
		t.Errorf("left over: %v", listed)
	}
	b.restart()
	if listed, _ := b.co.List(); len(listed) != 0 || b.co.bytes.Load() != 0 {
		t.Errorf("left over after a restart: %v, %d bytes", listed, b.co.bytes.Load())
	}
}

// TestDelete: groups, offsets, and the offsets of a topic that is deleted.
func TestDelete(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	j := b.form("g")
	for _, topic := range []string{"t", "u", "w"} {
		must(t, b.commit("simple", topic, 3))
	}
	errs := b.co.DeleteGroups([]string{"g", "none", "simple"})
	if !errors.Is(errs[0], core.ErrNonEmpty) || !errors.Is(errs[1], core.ErrNoGroup) || errs[2] != nil {
		t.Errorf("deleted: %v", errs)
	}
	b.wantOffset("simple", "t", -1)
	for _, topic := range []string{"t", "u", "w"} {
		must(t, b.commit("simple", topic, 4))
	}
	each, err := b.co.DeleteOffsets("simple", []store.TP{{Topic: "t"}, {Topic: "x"}})
	if err != nil || each[0] != nil || each[1] != nil {
		t.Errorf("offsets: %v %v", each, err)
	}
	b.co.TopicsDeleted([]string{"u"})
	for i := 0; i < 60_000; i++ {
		if got, _ := b.co.Fetch("simple", nil); len(got) == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, err = b.co.Leave("g", []core.Leaving{{MemberID: j.MemberID}})
	must(t, err)
	must(t, b.co.DeleteGroups([]string{"g"})[0])
	b.restart()
	b.wantOffset("simple", "t", -1)
	b.wantOffset("simple", "u", -1)
	b.wantOffset("simple", "w", 4)
	if _, err := b.co.Describe("g"); !errors.Is(err, core.ErrNoGroup) {
		t.Errorf("a deleted group: %v", err)
	}
}

// TestEmptied: a group whose offsets were all deleted is there, and empty, until expiry comes by.
func TestEmptied(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	for _, id := range []string{"g", "h"} {
		b.find(id)
		must(t, b.commit(id, "t", 3))
		_, err := b.co.DeleteOffsets(id, []store.TP{{Topic: "t"}})
		must(t, err)
		if d, err := b.co.Describe(id); err != nil || d.State != core.Empty {
			t.Errorf("%s: %+v %v", id, d, err)
		}
	}
	must(t, b.co.DeleteGroups([]string{"g"})[0])
	b.co.ExpireNow()
	if all, err := b.co.List(); len(all) != 0 {
		t.Errorf("left: %v %v", all, err)
	}
}

// TestDeleteInvited: a group that nobody has joined yet, only got an id for, can be deleted; the id is void.
func TestDeleteInvited(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	r := joinRequest("")
	r.IDRequired = true
	invited := b.co.Join(context.Background(), "g", r)
	if invited.Err != core.ErrMemberIDRequired {
		t.Fatalf("joined: %+v", invited)
	}
	must(t, b.co.DeleteGroups([]string{"g"})[0])
	if all, err := b.co.List(); len(all) != 0 {
		t.Errorf("left: %v %v", all, err)
	}
	if got := b.co.Join(context.Background(), "g", joinRequest(invited.MemberID)); got.Err != core.ErrUnknownMember {
		t.Errorf("joined a deleted group: %+v", got)
	}
}

// TestManyAtOnce: commits of many groups from many goroutines, each group's in order.
func TestManyAtOnce(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	var all sync.WaitGroup
	for g := range 40 {
		all.Go(func() {
			id := fmt.Sprint("g", g)
			for i := range int64(50) {
				if err := b.commit(id, "t", i); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				b.wantOffset(id, "t", i)
			}
		})
	}
	all.Wait()
	b.restart()
	for g := range 40 {
		b.wantOffset(fmt.Sprint("g", g), "t", 49)
	}
}

// TestBounds: groups take no more memory than they may, and go on with what they have.
func TestBounds(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	must(t, b.commit("g", "t", 1))
	b.co.cfg.MemoryBytesMax = 1
	if err := b.commit("g", "u", 1); !errors.Is(err, ErrNotAvailable) {
		t.Errorf("another offset: %v", err)
	}
	must(t, b.commit("g", "t", 2))
	if r := b.co.Join(context.Background(), "h", joinRequest("")); !errors.Is(r.Err, core.ErrGroupFull) {
		t.Errorf("another member: %v", r.Err)
	}
	b.co.cfg.MemoryBytesMax = 1 << 30
	big := joinRequest("")
	big.Protocols[0].Metadata = make([]byte, 2<<20)
	j := b.co.Join(context.Background(), "big", big)
	must(t, j.Err)
	s := b.co.Sync(context.Background(), "big", core.SyncRequest{MemberID: j.MemberID, Generation: j.Generation})
	if !errors.Is(s.Err, ErrStateTooLarge) {
		t.Errorf("a group that does not fit a record: %v", s.Err)
	}
	must(t, b.commit("g", "t", 3))
}

// TestDiskFull: commits are refused for as long as there is no room, and what was acknowledged stays.
func TestDiskFull(t *testing.T) {
	b := newBrokerOn(t, memdisk.New(memdisk.Options{CapacityBytes: 400 << 10}), clock.Real{}, nil)
	b.find("g")
	acked, refused := int64(-1), error(nil)
	for i := int64(0); refused == nil; i++ {
		if refused = b.commit("g", "t", i); refused == nil {
			acked = i
		}
		if i > 100_000 {
			t.Fatal("the disk is never full")
		}
	}
	if !errors.Is(refused, ErrNotAvailable) || !errors.Is(refused, disk.ErrFull) {
		t.Errorf("refused with %v", refused)
	}
	b.wantOffset("g", "t", acked)
	if j := b.co.Join(context.Background(), "g", joinRequest("")); j.Err != nil {
		t.Errorf("joining needs no room: %v", j.Err)
	}
	b.restart()
	b.wantOffset("g", "t", acked)
}

// TestRot: one flipped bit costs its batch; all other groups and offsets are there.
func TestRot(t *testing.T) {
	b := newBroker(t, clock.Real{}, map[string]string{"offsets.topic.num.partitions": "1"})
	b.find("g0")
	for i := range int64(20) {
		must(t, b.commit(fmt.Sprint("g", i), "t", i))
	}
	victim := PartitionOf("g7", partitions)
	b.stop()
	path := fmt.Sprintf("/data/%s-%d/%020d.log", Topic, victim, 0)
	f, err := b.fs.Open(path, disk.ReadWrite)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	all := make([]byte, size)
	_, err = f.ReadAt(all, 0)
	must(t, err)
	at := bytes.Index(all, []byte("g7"))
	_, err = f.WriteV([][]byte{{'h'}}, int64(at))
	must(t, err)
	must(t, f.Close())
	b.start()
	b.ready()
	for i := range int64(20) {
		want := i
		if i == 7 {
			want = -1
		}
		b.wantOffset(fmt.Sprint("g", i), "t", want)
	}
	must(t, b.commit("g7", "t", 8))
	b.restart()
	b.wantOffset("g7", "t", 8)
}

// TestLongNames: what could not be stored is refused, and harms nobody.
func TestLongNames(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	long := strings.Repeat("x", 40_000)
	if err := b.commit(long, "t", 1); !errors.Is(err, ErrInvalidGroup) {
		t.Errorf("commit: %v", err)
	}
	for what, change := range map[string]func(*core.JoinRequest){
		"type": func(r *core.JoinRequest) { r.ProtocolType = long }, "instance": func(r *core.JoinRequest) { r.InstanceID = &long },
		"protocol": func(r *core.JoinRequest) { r.Protocols[0].Name = long },
		"count":    func(r *core.JoinRequest) { r.Protocols = make([]core.Protocol, 100_000) },
	} {
		r := joinRequest("")
		change(&r)
		if j := b.co.Join(context.Background(), "g", r); !errors.Is(j.Err, core.ErrInconsistentProtocol) {
			t.Errorf("%s: %v", what, j.Err)
		}
	}
	r := joinRequest("")
	r.ClientID = long
	j := b.co.Join(context.Background(), "g", r)
	if j.Err != nil || len(j.MemberID) > 2000 {
		t.Errorf("client id: %d bytes, %v", len(j.MemberID), j.Err)
	}
	if listed, _ := b.co.List(); len(listed) != 1 {
		t.Errorf("listed: %d groups", len(listed))
	}
}

// TestEverythingAtOnce: members, commits, tools and leadership that moves, all at the same time: every call
// comes back, and in the end the group is whole.
func TestEverythingAtOnce(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { b.live(ctx, "g") })
	}
	for _, also := range []func(){
		func() { _ = b.commit("simple", "t", 1) },
		func() { b.co.Stats(); _, _ = b.co.List(); _, _ = b.co.Describe("g") },
		func() { b.co.ExpireNow(); b.co.TopicsDeleted([]string{"t"}) },
		func() { b.co.DeleteGroups([]string{"simple", "g"}) },
		func() { time.Sleep(20 * time.Millisecond); b.epoch += b.epoch / 2 % 2; b.lead() }, // sometimes another may have led
	} {
		all.Go(func() {
			for ctx.Err() == nil {
				also()
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(700 * time.Millisecond)
	stop()
	all.Wait()
	b.ready()
	if r := b.co.Join(context.Background(), "h", joinRequest("")); r.Err != nil {
		t.Errorf("afterwards: %v", r.Err)
	}
	b.co.Close()
	if n := b.co.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are counted when there is no group", n)
	}
}

// live is a member that joins, is assigned, sends heartbeats and commits, leaves, and so on.
func (b *broker) live(ctx context.Context, group string) {
	id := ""
	for n := 0; ctx.Err() == nil; n++ {
		j := b.co.Join(ctx, group, joinRequest(id))
		if j.Err != nil {
			id = ""
			continue
		}
		id = j.MemberID
		assignments := map[string][]byte{}
		for _, m := range j.Members {
			assignments[m.ID] = []byte("share")
		}
		s := b.co.Sync(ctx, group, core.SyncRequest{MemberID: id, Generation: j.Generation, Assignments: assignments})
		for range 5 {
			if s.Err != nil || b.co.Heartbeat(group, id, nil, j.Generation) != nil {
				break
			}
			_ = b.co.Commit(&CommitRequest{Group: group, MemberID: id, Generation: j.Generation, RetentionMs: -1,
				Offsets: []Committed{{TP: store.TP{Topic: "t"}, Offset: core.Offset{Offset: int64(n)}}}})
		}
		if n%4 == 3 {
			_, _ = b.co.Leave(group, []core.Leaving{{MemberID: id}})
			id = ""
		}
	}
	_, _ = b.co.Leave(group, []core.Leaving{{MemberID: id}})
}
