package checkpoint

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/magiconair/properties"
)

// Names of a data directory's and a partition's metadata files.
const (
	MetaFile      = "meta.properties"
	PartitionFile = "partition.metadata"
)

// Meta is meta.properties. Version 0 is ZooKeeper mode; 1 (KRaft) is read, and kept when rewritten.
type Meta struct {
	Version     int
	BrokerID    int32  // -1: not in the file
	ClusterID   string // "": not in the file
	DirectoryID string // "": not in the file; Kafka writes it in KRaft mode and when migrating
}

// ParseMeta reads the file's bytes; every error is ErrCorrupt.
func ParseMeta(p []byte) (Meta, error) {
	m := Meta{BrokerID: -1}
	l := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	props, err := l.LoadBytes(p)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(props.GetString("version", "0")))
	if err != nil || version < 0 || version > 1 {
		return m, fmt.Errorf("%w: version %q, want 0 or 1", ErrCorrupt, props.GetString("version", ""))
	}
	m.Version = version
	idKey := m.idKey()
	if s, ok := props.Get(idKey); ok {
		id, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil || id < 0 {
			return m, fmt.Errorf("%w: %s %q is no broker id", ErrCorrupt, idKey, s)
		}
		m.BrokerID = int32(id)
	}
	m.ClusterID = strings.TrimSpace(props.GetString("cluster.id", ""))
	m.DirectoryID = strings.TrimSpace(props.GetString("directory.id", ""))
	return m, nil
}

func (m Meta) idKey() string {
	if m.Version == 1 {
		return "node.id"
	}
	return "broker.id"
}

// FormatMeta returns the file's bytes. Ids are plain ASCII words, so that nothing needs escaping.
func FormatMeta(m Meta) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#\nversion=%d\n", m.Version)
	if m.ClusterID != "" {
		fmt.Fprintf(&b, "cluster.id=%s\n", m.ClusterID)
	}
	if m.BrokerID >= 0 {
		fmt.Fprintf(&b, "%s=%d\n", m.idKey(), m.BrokerID)
	}
	if m.DirectoryID != "" {
		fmt.Fprintf(&b, "directory.id=%s\n", m.DirectoryID)
	}
	return b.Bytes()
}

const (
	partitionVersionKey = "version: "
	partitionTopicKey   = "topic_id: "
)

// ParsePartition reads partition.metadata and gives the topic id, which is not zero. Every error is ErrCorrupt.
func ParsePartition(p []byte) (UUID, error) {
	version, rest, _ := cutLine(p)
	topic, rest, _ := cutLine(rest)
	v, ok := bytes.CutPrefix(version, []byte(partitionVersionKey))
	if n, err := parseInt(v, 32); !ok || err != nil || n != 0 {
		return UUID{}, fmt.Errorf("%w: line 1: %s, want %s0", ErrCorrupt, quote(version), partitionVersionKey)
	}
	s, ok := bytes.CutPrefix(topic, []byte(partitionTopicKey))
	if !ok {
		return UUID{}, fmt.Errorf("%w: line 2: %s, want %s", ErrCorrupt, quote(topic), partitionTopicKey)
	}
	id, err := ParseUUID(string(s))
	if err != nil {
		return UUID{}, fmt.Errorf("%w: line 2: %w", ErrCorrupt, err)
	}
	if id == (UUID{}) {
		return UUID{}, fmt.Errorf("%w: line 2: the topic id is zero", ErrCorrupt)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return UUID{}, fmt.Errorf("%w: line 3: %s, want nothing", ErrCorrupt, quote(rest))
	}
	return id, nil
}

// FormatPartition returns the bytes of partition.metadata; like Kafka's they end without a newline.
func FormatPartition(id UUID) []byte {
	return fmt.Appendf(nil, "%s0\n%s%s", partitionVersionKey, partitionTopicKey, id)
}
