package group

import (
	"time"

	"platter/coord/config"
	"platter/coord/group/core"
	"platter/engine/batch"
)

// FromSettings fills in what the broker's settings say.
func FromSettings(b *config.Broker, c Config) Config {
	c.Config = core.Config{
		SessionMinMs: int32(b.Int("group.min.session.timeout.ms")),
		SessionMaxMs: int32(b.Int("group.max.session.timeout.ms")),
		SizeMax:      b.Int("group.max.size"),
	}
	c.InitialDelayMs = max(b.Int64("group.initial.rebalance.delay.ms"), 0)
	c.DelayAlone = b.IsSet("group.initial.rebalance.delay.ms")
	c.PartitionCount = int32(b.Int("offsets.topic.num.partitions"))
	c.ReplicationFactor = int16(b.Int("offsets.topic.replication.factor"))
	c.FewerReplicas = !b.IsSet("offsets.topic.replication.factor")
	c.SegmentBytes = b.Int("offsets.topic.segment.bytes")
	c.Codec = batch.Codec(b.Int("offsets.topic.compression.codec"))
	c.LoadBytes = b.Int("offsets.load.buffer.size")
	c.CommitTimeout = time.Duration(b.Int64("offsets.commit.timeout.ms")) * time.Millisecond
	c.CommitAcks = int16(b.Int("offsets.commit.required.acks"))
	c.MetadataBytesMax = b.Int("offset.metadata.max.bytes")
	c.Retention = time.Duration(b.Int64("offsets.retention.minutes")) * time.Minute
	c.RetentionCheck = time.Duration(b.Int64("offsets.retention.check.interval.ms")) * time.Millisecond
	c.MemoryBytesMax = b.Int64("groups.memory.max.bytes")
	return c
}
