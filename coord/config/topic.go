package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"platter/engine/batch"
	"platter/engine/commitlog"
)

// CheckTopic validates a topic's overrides, one error naming the first bad setting. The topics that the
// broker keeps its own state in are compacted ones; until there is compaction they simply grow.
func CheckTopic(topic string, overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		d, ok := topicTable.find(name)
		if !ok {
			return fmt.Errorf("unknown topic setting %s", name)
		}
		v := strings.TrimSpace(overrides[name])
		if err := d.Check(v); err != nil {
			return fmt.Errorf("%s=%s: %w", name, v, err)
		}
		switch {
		case d.Support == Refused && v != d.Default:
			return fmt.Errorf("%s=%s cannot be honoured: %s", name, v, d.Why)
		case name == "cleanup.policy" && slices.Contains(splitList(v), "compact") && !IsInternal(topic):
			return fmt.Errorf("cleanup.policy=%s cannot be honoured: %s", v, whyNoCompaction)
		case name == "cleanup.policy" && len(splitList(v)) == 0:
			return fmt.Errorf("cleanup.policy is empty: use delete")
		}
	}
	return nil
}

// IsInternal tells Kafka's own topics, which clients do not write.
func IsInternal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state" || topic == "__share_group_state"
}

// TopicValue is a topic setting's effective value and source.
func (b *Broker) TopicValue(name string, overrides map[string]string) (string, Source) {
	d, ok := topicTable.find(name)
	if !ok {
		panic("config: no topic setting " + name)
	}
	if v, ok := overrides[name]; ok {
		return strings.TrimSpace(v), TopicConfig
	}
	if d.Synonym != "" {
		if v, src := b.Value(d.Synonym); src != Default {
			return v, src
		}
	}
	return d.Default, Default
}

// topicInt reads a checked whole number.
func (b *Broker) topicInt(name string, overrides map[string]string) int64 {
	v, _ := b.TopicValue(name, overrides)
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: %s=%s is not a whole number", name, v))
	}
	return n
}

// MinISR is min.insync.replicas of a topic.
func (b *Broker) MinISR(overrides map[string]string) int {
	return int(b.topicInt("min.insync.replicas", overrides))
}

// Unclean is unclean.leader.election.enable of a topic.
func (b *Broker) Unclean(overrides map[string]string) bool {
	v, _ := b.TopicValue("unclean.leader.election.enable", overrides)
	return v == "true"
}

// Log makes the engine's settings of a topic: its overrides over the broker's defaults. The overrides
// were checked by CheckTopic.
func (b *Broker) Log(overrides map[string]string) commitlog.Config {
	num := func(name string) int64 { return b.topicInt(name, overrides) }
	text := func(name string) string { v, _ := b.TopicValue(name, overrides); return v }

	c := commitlog.DefaultConfig()
	c.SegmentBytes = num("segment.bytes")
	c.SegmentMs = num("segment.ms")
	c.SegmentJitterMs = num("segment.jitter.ms")
	c.SegmentIndexBytes = num("segment.index.bytes")
	c.IndexIntervalBytes = num("index.interval.bytes")
	c.RetentionBytes = num("retention.bytes")
	c.RetentionMs = num("retention.ms")
	policy := splitList(text("cleanup.policy"))
	c.DeleteRetention = slices.Contains(policy, "delete")
	c.Compacted = slices.Contains(policy, "compact")
	c.FileDeleteDelayMs = num("file.delete.delay.ms")
	c.FlushMessages = num("flush.messages")
	c.FlushMs = num("flush.ms")
	c.MaxMessageBytes = int(num("max.message.bytes"))
	c.LogAppendTime = text("message.timestamp.type") == "LogAppendTime"
	c.TimestampBeforeMaxMs, c.TimestampAfterMaxMs = b.timestampBounds(overrides)
	c.Compression = b.compression(overrides)
	c.Preallocate = strings.EqualFold(text("preallocate"), "true")
	c.ProducerIDExpirationMs = b.Int64("producer.id.expiration.ms")
	c.DecompressedBytesMax = b.Int64("produce.decompressed.max.bytes")
	validation, _ := b.Value("produce.validation")
	c.ValidateHeaderOnly = validation == "headers"
	return c
}

// timestampBounds: the old setting message.timestamp.difference.max.ms counts for each of the newer two
// that is at its default (KIP-937).
func (b *Broker) timestampBounds(overrides map[string]string) (before, after int64) {
	difference := b.topicInt("message.timestamp.difference.max.ms", overrides)
	before = b.topicInt("message.timestamp.before.max.ms", overrides)
	after = b.topicInt("message.timestamp.after.max.ms", overrides)
	if before == math.MaxInt64 {
		before = difference
	}
	if after == math.MaxInt64 {
		after = difference
	}
	return before, after
}

// compression reads compression.type and the level that goes with it; a codec's own default level is 0.
func (b *Broker) compression(overrides map[string]string) commitlog.Compression {
	name, _ := b.TopicValue("compression.type", overrides)
	if name == "producer" {
		return commitlog.Compression{Producer: true}
	}
	codec, err := batch.ParseCodec(name)
	if err != nil {
		panic("config: compression.type passed its check: " + err.Error())
	}
	c := commitlog.Compression{Codec: codec}
	if levels := "compression." + name + ".level"; topicTable.has(levels) {
		if v, src := b.TopicValue(levels, overrides); src != Default && v != "-1" {
			c.Level = int(b.topicInt(levels, overrides))
		}
	}
	return c
}

func (t *table) has(name string) bool {
	_, ok := t.byName[name]
	return ok
}
