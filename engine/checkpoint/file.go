// Package checkpoint reads and writes the small files of a data directory, in Kafka's formats: offset
// checkpoints, meta.properties, partition.metadata, the clean-shutdown mark, the boot id.
//
//	recovery-point-offset-checkpoint, replication-offset-checkpoint, log-start-offset-checkpoint,
//	cleaner-offset-checkpoint      lines: 0, <count>, then <topic> <partition> <offset>
//	leader-epoch-checkpoint        lines: 0, <count>, then <epoch> <start offset>  (package epoch)
//	meta.properties                Java properties: version=0, broker.id, cluster.id, directory.id
//	partition.metadata             version: 0, topic_id: <unpadded URL-safe base64>
//	.kafka_cleanshutdown           JSON: {"version":0,"brokerEpoch":<long>}; empty with older Kafkas
//	.platter_boot                  ours: the kernel's boot id, as it was when the directory was last opened
//
// The parsers are strict and bounded: what they do not understand is ErrCorrupt, with line and cause.
// Sources: Kafka's CheckpointFile, OffsetCheckpointFile, MetaProperties, PartitionMetadataFile and
// CleanShutdownFileHandler.
package checkpoint

import (
	"errors"
	"fmt"

	"platter/io/disk"
)

// FileBytesMax bounds the memory that one of these files may take: about a million lines.
const FileBytesMax = 64 << 20

// ReadFile reads a whole small file; one longer than bytesMax is ErrCorrupt. Missing: fs.ErrNotExist.
func ReadFile(fs disk.FS, path string, bytesMax int64) ([]byte, error) {
	p, err := disk.ReadFile(fs, path, bytesMax)
	if errors.Is(err, disk.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return p, err
}
