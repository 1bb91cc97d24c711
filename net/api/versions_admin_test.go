package api_test

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// administration adds the administrative requests, over topic "t" with two partitions.
func administration(requests map[kmsg.Key]func(v int16) kmsg.Request) {
	requests[kmsg.CreatePartitions] = func(v int16) kmsg.Request { return morePartitions("t", 3+int32(v)) }
	requests[kmsg.DeleteRecords] = func(int16) kmsg.Request { return deleteRecords("t", 0, -1) }
	requests[kmsg.DescribeLogDirs] = func(int16) kmsg.Request { return kmsg.NewPtrDescribeLogDirsRequest() }
	requests[kmsg.DescribeProducers] = func(int16) kmsg.Request { return describeProducers("t", 0) }
	requests[kmsg.ElectLeaders] = func(int16) kmsg.Request { return electLeaders(0, "t", 0) }
	requests[kmsg.AlterConfigs] = func(int16) kmsg.Request {
		return alterAll(kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "3600000")
	}
	requests[kmsg.IncrementalAlterConfigs] = func(int16) kmsg.Request {
		return alter(kmsg.ConfigResourceTypeBroker, "1", set("log.retention.ms", "3600000"))
	}
	requests[kmsg.ListPartitionReassignments] = func(int16) kmsg.Request {
		return kmsg.NewPtrListPartitionReassignmentsRequest()
	}
}

// administrationCodes are the error codes of the answers to them.
func administrationCodes(resp kmsg.Response) []int16 {
	switch r := resp.(type) {
	case *kmsg.CreatePartitionsResponse:
		return []int16{r.Topics[0].ErrorCode}
	case *kmsg.DeleteRecordsResponse:
		return []int16{r.Topics[0].Partitions[0].ErrorCode}
	case *kmsg.DescribeLogDirsResponse:
		return []int16{r.ErrorCode, r.Dirs[0].ErrorCode}
	case *kmsg.DescribeProducersResponse:
		return []int16{r.Topics[0].Partitions[0].ErrorCode}
	case *kmsg.ElectLeadersResponse:
		if got := api.Code(r.Topics[0].Partitions[0].ErrorCode); got != api.ElectionNotNeeded {
			return []int16{int16(got)}
		}
		return []int16{r.ErrorCode}
	case *kmsg.AlterConfigsResponse:
		return []int16{r.Resources[0].ErrorCode}
	case *kmsg.IncrementalAlterConfigsResponse:
		return []int16{r.Resources[0].ErrorCode}
	case *kmsg.ListPartitionReassignmentsResponse:
		return []int16{r.ErrorCode}
	}
	return nil
}

func morePartitions(topic string, count int32, assignment ...[]int32) *kmsg.CreatePartitionsRequest {
	req := kmsg.NewPtrCreatePartitionsRequest()
	q := kmsg.NewCreatePartitionsRequestTopic()
	q.Topic, q.Count = topic, count
	for _, ids := range assignment {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = ids
		q.Assignment = append(q.Assignment, a)
	}
	req.Topics = append(req.Topics, q)
	return req
}

func deleteRecords(topic string, partition int32, offset int64) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	q := kmsg.NewDeleteRecordsRequestTopic()
	q.Topic = topic
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	q.Partitions = append(q.Partitions, p)
	req.Topics = append(req.Topics, q)
	return req
}

func describeProducers(topic string, partition int32) *kmsg.DescribeProducersRequest {
	req := kmsg.NewPtrDescribeProducersRequest()
	q := kmsg.NewDescribeProducersRequestTopic()
	q.Topic, q.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, q)
	return req
}

func electLeaders(typ int8, topic string, partitions ...int32) *kmsg.ElectLeadersRequest {
	req := kmsg.NewPtrElectLeadersRequest()
	q := kmsg.NewElectLeadersRequestTopic()
	q.Topic, q.Partitions = topic, partitions
	req.ElectionType, req.Topics = typ, append(req.Topics, q)
	return req
}
