package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"platter/io/disk"
)

// Names of the offset checkpoints in a data directory.
const (
	RecoveryPointFile  = "recovery-point-offset-checkpoint"
	HighWatermarkFile  = "replication-offset-checkpoint"
	LogStartOffsetFile = "log-start-offset-checkpoint"
	CleanerOffsetFile  = "cleaner-offset-checkpoint"
)

// topicBytesMax bounds a topic's name: it is part of a file name.
const topicBytesMax = 255

// Key is a partition's name; store.TP converts to it and back.
type Key struct {
	Topic     string
	Partition int32
}

// Offsets is what an offset checkpoint says of each partition.
type Offsets map[Key]int64

// ParseOffsets reads an offset checkpoint's bytes; every error is ErrCorrupt. Of two lines for one partition the
// last counts, as in Kafka.
func ParseOffsets(p []byte) (Offsets, error) {
	out := Offsets{}
	err := ParseLines(p, func(line []byte) error {
		topic, rest, _ := bytes.Cut(line, []byte{' '})
		if len(topic) == 0 || len(topic) > topicBytesMax {
			return fmt.Errorf("topic %s", quote(topic))
		}
		var v [2]int64
		if err := ParseInts(rest, v[:], 32, 64); err != nil {
			return err
		}
		if v[0] < 0 || v[1] < 0 {
			return fmt.Errorf("negative partition or offset in %s", quote(line))
		}
		out[Key{string(topic), int32(v[0])}] = v[1]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FormatOffsets returns the file's bytes, sorted by topic and partition.
func FormatOffsets(o Offsets) []byte {
	keys := make([]Key, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	p := AppendLinesHeader(make([]byte, 0, 32*len(o)+16), len(o))
	for _, k := range keys {
		p = append(append(p, k.Topic...), ' ')
		p = append(strconv.AppendInt(p, int64(k.Partition), 10), ' ')
		p = append(strconv.AppendInt(p, o[k], 10), '\n')
	}
	return p
}

// ReadOffsets reads one offset checkpoint; a missing file is empty. An unreadable one is ErrCorrupt,
// and the caller goes on as if it were missing: what it says is only ever a shortcut.
func ReadOffsets(fs disk.FS, path string) (Offsets, error) {
	p, err := ReadFile(fs, path, FileBytesMax)
	if disk.IsNotExist(err) {
		return Offsets{}, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := ParseOffsets(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return o, nil
}
