package api_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// FuzzRequests gives a broker any frame: it is answered or refused, and the broker serves on.
func FuzzRequests(f *testing.F) {
	b := startBroker(f, map[string]string{"auto.create.topics.enable": "false"})
	id := b.create("t", 1)
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("c"))
	for _, req := range []kmsg.Request{produceRequest("t", id, 0, 1, records(1, "a")), fetchRequest("t", id, 0, 0), metadataFor("t"),
		listOffsets("t", 0, -1), describe(kmsg.ConfigResourceTypeTopic, "t"), kmsg.NewPtrFindCoordinatorRequest(), apiVersions(),
		morePartitions("t", 2, []int32{1}), deleteRecords("t", 0, -1), describeProducers("t", 0), electLeaders(0, "t", 0),
		kmsg.NewPtrDescribeLogDirsRequest(), kmsg.NewPtrListPartitionReassignmentsRequest(),
		alterAll(kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "5"), alter(kmsg.ConfigResourceTypeBroker, "1", plus("log.cleanup.policy", "delete"))} {
		for v := served[kmsg.Key(req.Key())][0]; v <= served[kmsg.Key(req.Key())][1]; v++ {
			req.SetVersion(v)
			f.Add(format.AppendRequest(nil, req, 1)[4:])
		}
	}
	b.coordinate()
	for key, make := range groupRequests(id) {
		for v := served[key][0]; v <= served[key][1]; v++ {
			req := make(v)
			req.SetVersion(v)
			f.Add(format.AppendRequest(nil, req, 1)[4:])
		}
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		peer := b.dialFor(t)
		peer.nc.Write(framed(p))
		peer.nc.(interface{ CloseWrite() error }).CloseWrite() // ends a long poll too
		for {
			if _, err := peer.frame(); err != nil {
				break
			}
		}
		good := b.dialFor(t)
		got := ask[*kmsg.ListOffsetsResponse](good, 4, listOffsets("t", 0, -1)).Topics[0].Partitions[0]
		code(t, "afterwards", got.ErrorCode, api.None)
	})
}
