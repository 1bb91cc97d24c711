package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"platter/engine/checkpoint"
	"platter/engine/epoch"
	"platter/engine/producer"
)

// small dumps the files that are read as a whole.
func (d *Dumper) small(path string, kind Kind) error {
	if kind == Snapshot {
		entries, err := producer.ReadSnapshot(d.fs, path)
		if err != nil {
			return err
		}
		return emitAll(d, entries, func(e producer.SnapshotEntry) line { return producerLine{"producer", path, e} })
	}
	p, err := checkpoint.ReadFile(d.fs, path, checkpoint.FileBytesMax)
	if err != nil {
		return err
	}
	switch kind {
	case Epochs:
		entries, err := epoch.Parse(p)
		if err != nil {
			return err
		}
		return emitAll(d, entries, func(e epoch.Entry) line { return epochLine{"epoch", path, e.Epoch, e.StartOffset} })
	case Offsets:
		offsets, err := checkpoint.ParseOffsets(p)
		if err != nil {
			return err
		}
		keys := slices.SortedFunc(maps.Keys(offsets), func(a, b checkpoint.Key) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
		return emitAll(d, keys, func(k checkpoint.Key) line {
			return checkpointLine{"checkpoint", path, k.Topic, k.Partition, offsets[k]}
		})
	case Partition:
		id, err := checkpoint.ParsePartition(p)
		if err != nil {
			return err
		}
		return d.emit(partitionLine{"partition", path, id.String()})
	default:
		m, err := checkpoint.ParseMeta(p)
		if err != nil {
			return err
		}
		return d.emit(metaLine{"meta", path, m.Version, m.BrokerID, m.ClusterID, m.DirectoryID})
	}
}

func emitAll[T any](d *Dumper, items []T, toLine func(T) line) error {
	for _, it := range items {
		if err := d.emit(toLine(it)); err != nil {
			return err
		}
	}
	return nil
}

type producerLine struct {
	Type string `json:"type"`
	File string `json:"file"`
	producer.SnapshotEntry
}

func (l producerLine) text() string {
	txn := "None"
	if l.CurrentTxnFirstOffset >= 0 {
		txn = fmt.Sprint(l.CurrentTxnFirstOffset)
	}
	return fmt.Sprintf("producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
		l.ProducerID, l.Epoch, l.CoordinatorEpoch, txn, l.TimestampMs, l.FirstSequence(), l.LastSequence, l.LastOffset, l.OffsetDelta, l.TimestampMs)
}

type epochLine struct {
	Type        string `json:"type"`
	File        string `json:"file"`
	Epoch       int32  `json:"epoch"`
	StartOffset int64  `json:"start_offset"`
}

func (l epochLine) text() string {
	return fmt.Sprintf("epoch: %d startOffset: %d", l.Epoch, l.StartOffset)
}

type checkpointLine struct {
	Type      string `json:"type"`
	File      string `json:"file"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (l checkpointLine) text() string {
	return fmt.Sprintf("topic: %s partition: %d offset: %d", printable([]byte(l.Topic)), l.Partition, l.Offset)
}

type partitionLine struct {
	Type    string `json:"type"`
	File    string `json:"file"`
	TopicID string `json:"topic_id"`
}

func (l partitionLine) text() string { return "topicId: " + l.TopicID }

type metaLine struct {
	Type        string `json:"type"`
	File        string `json:"file"`
	Version     int    `json:"version"`
	BrokerID    int32  `json:"broker_id"`
	ClusterID   string `json:"cluster_id"`
	DirectoryID string `json:"directory_id,omitempty"`
}

func (l metaLine) text() string {
	return fmt.Sprintf("version: %d brokerId: %d clusterId: %s directoryId: %s",
		l.Version, l.BrokerID, printable([]byte(l.ClusterID)), printable([]byte(l.DirectoryID)))
}
