package record

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
	"platter/engine/store"
)

func ptr(s string) *string { return &s }

// TestBytes holds what is written against bytes that were worked out by hand from Kafka's definitions.
func TestBytes(t *testing.T) {
	key := Key{Kind: Offset, Group: "g", TP: store.TP{Topic: "to", Partition: 7}}
	for _, c := range []struct {
		what string
		got  []byte
		want string
	}{
		{"offset key", key.Append(nil), "0001" + "000167" + "0002746f" + "00000007"},
		{"group key", Key{Kind: Group, Group: "g"}.Append(nil), "0002" + "000167"},
		{"offset", AppendOffset(nil, core.Offset{Offset: 5, LeaderEpoch: 2, Metadata: "m", CommitMs: 9, ExpireMs: -1}),
			"0003" + "0000000000000005" + "00000002" + "00016d" + "0000000000000009"},
		{"offset that expires", AppendOffset(nil, core.Offset{Offset: 5, LeaderEpoch: 2, CommitMs: 9, ExpireMs: 10}),
			"0001" + "0000000000000005" + "0000" + "0000000000000009" + "000000000000000a"},
		{"empty group", AppendGroup(nil, &core.Snapshot{ProtocolType: "c", Generation: 3, StateMs: 4}),
			"0003" + "000163" + "00000003" + "ffff" + "ffff" + "0000000000000004" + "00000000"},
		{"group", AppendGroup(nil, &core.Snapshot{ProtocolType: "c", Generation: 3, Protocol: ptr("p"), Leader: ptr("l"), StateMs: 4,
			Members: []core.SnapshotMember{{ID: "l", InstanceID: ptr("i"), ClientID: "x", ClientHost: "/h", RebalanceMs: 1, SessionMs: 2, Metadata: []byte{8}, Assignment: []byte{9}}}}),
			"0003" + "000163" + "00000003" + "000170" + "00016c" + "0000000000000004" + "00000001" +
				"00016c" + "000169" + "000178" + "00022f68" + "00000001" + "00000002" + "0000000108" + "0000000109"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n%s\n%s", c.what, got, c.want)
		}
	}
}

// TestVersions: every version that some Kafka wrote is read.
func TestVersions(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		p := (&kmsg.OffsetCommitValue{Version: version, Offset: 1, LeaderEpoch: 2, Metadata: "m", CommitTimestamp: 3, ExpireTimestamp: 4}).AppendTo(nil)
		want := core.Offset{Offset: 1, LeaderEpoch: -1, Metadata: "m", CommitMs: 3, ExpireMs: -1}
		if version >= 3 {
			want.LeaderEpoch = 2
		}
		if version == 1 {
			want.ExpireMs = 4
		}
		got, err := ReadOffset(p)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("offset version %d: %v %s", version, err, diff)
		}

		p = (&kmsg.GroupMetadataValue{Version: version, ProtocolType: "c", Generation: 1, Protocol: ptr("p"), Leader: ptr("l"), CurrentStateTimestamp: 5,
			Members: []kmsg.GroupMetadataValueMember{{MemberID: "l", InstanceID: ptr("i"), RebalanceTimeoutMillis: 6, SessionTimeoutMillis: 7, Subscription: []byte{1}, Assignment: []byte{2}}}}).AppendTo(nil)
		m := core.SnapshotMember{ID: "l", RebalanceMs: -1, SessionMs: 7, Metadata: []byte{1}, Assignment: []byte{2}}
		s := &core.Snapshot{ProtocolType: "c", Generation: 1, Protocol: ptr("p"), Leader: ptr("l"), StateMs: -1}
		if version >= 1 {
			m.RebalanceMs = 6
		}
		if version >= 2 {
			s.StateMs = 5
		}
		if version >= 3 {
			m.InstanceID = ptr("i")
		}
		s.Members = []core.SnapshotMember{m}
		group, err := ReadGroup(p)
		if diff := cmp.Diff(s, group); diff != "" || err != nil {
			t.Errorf("group version %d: %v %s", version, err, diff)
		}
	}
}

func TestInvalid(t *testing.T) {
	if k, err := ReadKey([]byte{0, 3, 1, 2, 3}); err != nil || k.Kind != Others {
		t.Errorf("a newer coordinator's key: %v %v", k, err)
	}
	for _, p := range []string{"", "00", "0001", "00010005", "00020001"} {
		b, _ := hex.DecodeString(p)
		if _, err := ReadKey(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("key %s: %v", p, err)
		}
	}
	for _, p := range []string{"", "0005", "ffff", "000300"} {
		b, _ := hex.DecodeString(p)
		if _, err := ReadOffset(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("offset %s: %v", p, err)
		}
		if _, err := ReadGroup(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("group %s: %v", p, err)
		}
	}
}

// FuzzRead: no bytes do harm, and what is read is written and read again the same.
func FuzzRead(f *testing.F) {
	f.Add(Key{Kind: Offset, Group: "g", TP: store.TP{Topic: "t", Partition: 1}}.Append(nil))
	f.Add(Key{Kind: Group, Group: "g"}.Append(nil))
	f.Add(AppendOffset(nil, core.Offset{Metadata: "m", ExpireMs: -1}))
	f.Add(AppendGroup(nil, &core.Snapshot{ProtocolType: "c", Protocol: ptr("p"), Members: []core.SnapshotMember{{ID: "a"}}}))
	f.Add((&kmsg.GroupMetadataValue{Version: 4, Members: make([]kmsg.GroupMetadataValueMember, 2)}).AppendTo(nil))
	f.Add([]byte{0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, p []byte) {
		if k, err := ReadKey(p); err == nil && k.Kind != Others {
			if again, err := ReadKey(k.Append(nil)); err != nil || again != k {
				t.Errorf("%v then %v %v", k, again, err)
			}
		}
		if o, err := ReadOffset(p); err == nil && o.ExpireMs < 0 {
			if again, err := ReadOffset(AppendOffset(nil, o)); err != nil || again.Offset != o.Offset {
				t.Errorf("%v then %v %v", o, again, err)
			}
		}
		if s, err := ReadGroup(p); err == nil {
			if again, err := ReadGroup(AppendGroup(nil, s)); err != nil || again.Generation != s.Generation || len(again.Members) != len(s.Members) {
				t.Errorf("%v then %v %v", s, again, err)
			}
		}
	})
}
