// Package record is the records of __consumer_offsets, byte for byte as Kafka 3.9 writes them: committed
// offsets and the state of groups. A null value is a tombstone. All integers are big endian; a string is
// a 2-byte length and its bytes, bytes are a 4-byte length and themselves.
//
// The key, by its version:
//
//	size  field                              version 0, 1: a committed offset
//	   2  version
//	   …  group, string
//	   …  topic, string
//	   4  partition
//
//	size  field                              version 2: a group's state
//	   2  version
//	   …  group, string
//
// A committed offset's value. Version 3 is written, or 1 when the client named a time of expiry; 0 to 4
// are read (4 has compact strings and tagged fields):
//
//	size  field
//	   2  version
//	   8  offset
//	   4  leader epoch, -1: not known        (from version 3)
//	   …  metadata, string
//	   8  commit time in ms
//	   8  expiry in ms, -1: none             (version 1)
//
// A group's state. Version 3 is written; 0 to 4 are read:
//
//	size  field
//	   2  version
//	   …  protocol type, string
//	   4  generation
//	   …  protocol, nullable string
//	   …  leader, nullable string
//	   8  since when it is in this state, ms (from version 2)
//	   4  count of members, then for each:
//	   …    member id, string
//	   …    group.instance.id, nullable string (from version 3)
//	   …    client id, string
//	   …    client host, string
//	   4    rebalance timeout in ms          (from version 1)
//	   4    session timeout in ms
//	   …    subscription, bytes
//	   …    assignment, bytes
//
// Source: OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json and GroupMetadataValue.json of
// Kafka's group coordinator. Whatever is wrong with the bytes wraps ErrInvalid.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
	"platter/engine/store"
)

// ErrInvalid: bytes that are no record of this topic.
var ErrInvalid = errors.New("invalid record of __consumer_offsets")

// Versions of keys and values; they are on disk and never change.
const (
	offsetKeyVersion          = 1
	groupKeyVersion           = 2
	offsetValueVersion        = 3
	offsetValueExpiresVersion = 1
	groupValueVersion         = 3
	valueVersionMax           = 4
)

// Kind says what a key is about.
type Kind int

// Kinds. Others is what newer coordinators write (KIP-848) and this one passes over.
const (
	Offset Kind = iota
	Group
	Others
)

// Key is a record's key. TP is set for an Offset.
type Key struct {
	Kind  Kind
	Group string
	TP    store.TP
}

// Append encodes the key.
func (k Key) Append(dst []byte) []byte {
	if k.Kind == Group {
		return (&kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: k.Group}).AppendTo(dst)
	}
	return (&kmsg.OffsetCommitKey{
		Version: offsetKeyVersion, Group: k.Group, Topic: k.TP.Topic, Partition: k.TP.Partition,
	}).AppendTo(dst)
}

// ReadKey decodes a key.
func ReadKey(p []byte) (Key, error) {
	version, err := versionOf(p, "key")
	if err != nil {
		return Key{}, err
	}
	switch version {
	case 0, offsetKeyVersion:
		var k kmsg.OffsetCommitKey
		if err := k.ReadFrom(p); err != nil {
			return Key{}, fmt.Errorf("%w: key of version %d: %w", ErrInvalid, version, err)
		}
		return Key{Kind: Offset, Group: k.Group, TP: store.TP{Topic: k.Topic, Partition: k.Partition}}, nil
	case groupKeyVersion:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(p); err != nil {
			return Key{}, fmt.Errorf("%w: key of version %d: %w", ErrInvalid, version, err)
		}
		return Key{Kind: Group, Group: k.Group}, nil
	}
	return Key{Kind: Others}, nil
}

func versionOf(p []byte, what string) (int16, error) {
	if len(p) < 2 {
		return 0, fmt.Errorf("%w: %s has %d bytes", ErrInvalid, what, len(p))
	}
	return int16(binary.BigEndian.Uint16(p)), nil
}

func valueVersion(p []byte) error {
	v, err := versionOf(p, "value")
	if err == nil && (v < 0 || v > valueVersionMax) {
		err = fmt.Errorf("%w: value of version %d", ErrInvalid, v)
	}
	return err
}

// AppendOffset encodes a committed offset's value.
func AppendOffset(dst []byte, o core.Offset) []byte {
	v := kmsg.OffsetCommitValue{
		Version: offsetValueVersion, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, CommitTimestamp: o.CommitMs,
	}
	if o.ExpireMs >= 0 {
		v.Version, v.ExpireTimestamp = offsetValueExpiresVersion, o.ExpireMs
	}
	return v.AppendTo(dst)
}

// ReadOffset decodes a committed offset's value.
func ReadOffset(p []byte) (core.Offset, error) {
	if err := valueVersion(p); err != nil {
		return core.Offset{}, err
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(p); err != nil {
		return core.Offset{}, fmt.Errorf("%w: committed offset: %w", ErrInvalid, err)
	}
	o := core.Offset{Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata, CommitMs: v.CommitTimestamp, ExpireMs: -1}
	if v.Version >= 3 {
		o.LeaderEpoch = v.LeaderEpoch
	}
	if v.Version == offsetValueExpiresVersion {
		o.ExpireMs = v.ExpireTimestamp
	}
	return o, nil
}

// AppendGroup encodes a group's state.
func AppendGroup(dst []byte, s *core.Snapshot) []byte {
	v := kmsg.GroupMetadataValue{
		Version: groupValueVersion, ProtocolType: s.ProtocolType, Generation: s.Generation,
		Protocol: s.Protocol, Leader: s.Leader, CurrentStateTimestamp: s.StateMs,
		Members: make([]kmsg.GroupMetadataValueMember, len(s.Members)),
	}
	for i := range s.Members {
		m := &s.Members[i]
		v.Members[i] = kmsg.GroupMetadataValueMember{
			MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceTimeoutMillis: m.RebalanceMs, SessionTimeoutMillis: m.SessionMs,
			Subscription: m.Metadata, Assignment: m.Assignment,
		}
	}
	return v.AppendTo(dst)
}

// ReadGroup decodes a group's state; nothing of p is kept.
func ReadGroup(p []byte) (*core.Snapshot, error) {
	if err := valueVersion(p); err != nil {
		return nil, err
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(p); err != nil {
		return nil, fmt.Errorf("%w: group: %w", ErrInvalid, err)
	}
	s := &core.Snapshot{
		ProtocolType: v.ProtocolType, Generation: v.Generation, Protocol: v.Protocol, Leader: v.Leader, StateMs: -1,
		Members: make([]core.SnapshotMember, len(v.Members)),
	}
	if v.Version >= 2 {
		s.StateMs = v.CurrentStateTimestamp
	}
	for i := range v.Members {
		m := &v.Members[i]
		s.Members[i] = core.SnapshotMember{
			ID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceMs: m.RebalanceTimeoutMillis, SessionMs: m.SessionTimeoutMillis,
			Metadata: bytes.Clone(m.Subscription), Assignment: bytes.Clone(m.Assignment),
		}
	}
	return s, nil
}
