package api

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
)

// DescribeLogDirs (KIP-113, KIP-827). Versions 0 to 5. Behaviour:
//   - null topics mean all; what is not here is left out;
//   - a directory that is offline is KAFKA_STORAGE_ERROR, without partitions and sizes;
//   - the offset lag is how far the log end is behind the high watermark, which is 0 on a leader; no
//     replica is ever on its way from one directory to another;
//   - no directory is ever cordoned (version 5, KIP-1066).
func init() { register(kmsg.DescribeLogDirs, 0, 5, (*Handler).describeLogDirs) }

func (h *Handler) describeLogDirs(c call, req *kmsg.DescribeLogDirsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	wanted := func(store.TP) bool { return true }
	if req.Topics != nil {
		named := map[store.TP]bool{}
		for i := range req.Topics {
			for _, p := range req.Topics[i].Partitions {
				named[store.TP{Topic: req.Topics[i].Topic, Partition: p}] = true
			}
		}
		wanted = func(tp store.TP) bool { return named[tp] }
	}
	for _, info := range h.Store.Dirs() {
		d := kmsg.NewDescribeLogDirsResponseDir()
		d.Dir, d.TotalBytes, d.UsableBytes = absolute(info.Path), -1, -1
		if info.Offline != nil {
			d.ErrorCode = h.count(c, KafkaStorageError)
		} else {
			d.ErrorCode = h.count(c, None)
			d.TotalBytes, d.UsableBytes = info.Space.TotalBytes, info.Space.FreeBytes
			d.Topics = h.dirTopics(slices.DeleteFunc(info.Logs, func(tp store.TP) bool { return !wanted(tp) }))
		}
		resp.Dirs = append(resp.Dirs, d)
	}
	return resp, nil
}

// absolute is a path as Kafka tells it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// dirTopics describes the logs of one directory, which it sorts.
func (h *Handler) dirTopics(tps []store.TP) []kmsg.DescribeLogDirsResponseDirTopic {
	slices.SortFunc(tps, func(a, b store.TP) int {
		if d := strings.Compare(a.Topic, b.Topic); d != 0 {
			return d
		}
		return int(a.Partition) - int(b.Partition)
	})
	var out []kmsg.DescribeLogDirsResponseDirTopic
	for _, tp := range tps {
		log := h.Store.Get(tp)
		if log == nil {
			continue // deleted, or its directory failed, at this moment
		}
		if len(out) == 0 || out[len(out)-1].Topic != tp.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = tp.Topic
			out = append(out, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag = tp.Partition, log.SizeBytes(), -1
		if part, err := h.Replicas.Replica(tp); err == nil {
			if st, err := part.State(-1); err == nil {
				p.OffsetLag = max(st.HighWatermark-st.LogEnd, 0)
			}
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return out
}
