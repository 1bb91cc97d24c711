package clients

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"
)

// TestSaramaAdministration: Sarama's cluster admin in the oldest and in the newest versions of the requests.
func TestSaramaAdministration(t *testing.T) {
	b := broker(t, map[string]string{"broker.id": "0"})
	for _, version := range []sarama.KafkaVersion{sarama.V1_0_0_0, sarama.MaxVersion} {
		t.Run(version.String(), func(t *testing.T) {
			c := sarama.NewConfig()
			c.Version = version
			c.Producer.Return.Successes = true
			c.Producer.RequiredAcks = sarama.WaitForAll // records can be deleted below the high watermark alone
			admin, err := sarama.NewClusterAdmin(seeds(b.Addr()), c)
			must(t, err)
			defer admin.Close()
			topic := "admin-" + version.String()
			must(t, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: replicas()}, false))
			producer, err := sarama.NewSyncProducer(seeds(b.Addr()), c)
			must(t, err)
			defer producer.Close()
			for range 3 {
				_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
				must(t, err)
			}

			assignment := []int32{0, 1, 2}[:replicas()]
			must(t, admin.CreatePartitions(topic, 3, [][]int32{assignment, assignment}, false))
			if err := admin.CreatePartitions(topic, 2, nil, false); err == nil {
				t.Error("fewer partitions: no error")
			}
			must(t, admin.DeleteRecords(topic, map[int32]int64{0: 2}))
			if err := admin.DeleteRecords(topic, map[int32]int64{0: 9}); !errors.Is(err, sarama.ErrOffsetOutOfRange) {
				t.Errorf("beyond the end: %v", err)
			}
			value := func(name string) string {
				t.Helper()
				resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name}}
				got, err := admin.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
				must(t, err)
				if len(got) != 1 || len(got[0].Configs) != 1 {
					t.Fatalf("%s: %+v", name, got)
				}
				return got[0].Configs[0].Value
			}
			text := func(s string) *string { return &s }
			must(t, admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": text("1000")}, false))
			// Another broker answers, maybe, which hears of it from the coordinator.
			until(t, "retention.ms to change", func() bool { return value("retention.ms") == "1000" })
			dirs, err := admin.DescribeLogDirs([]int32{0})
			must(t, err)
			if len(dirs[0]) != 1 || dirs[0][0].ErrorCode != sarama.ErrNoError || len(dirs[0][0].Topics) == 0 {
				t.Errorf("log dirs: %+v", dirs)
			}
			if !version.IsAtLeast(sarama.V2_4_0_0) {
				return
			}
			must(t, admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
				"retention.ms":  {Operation: sarama.IncrementalAlterConfigsOperationDelete},
				"segment.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: text("100000")},
			}, false))
			until(t, "retention.ms and segment.bytes to change", func() bool {
				return value("retention.ms") == "604800000" && value("segment.bytes") == "100000"
			})
			if b.settleWhole(topic); rolled() { // then others lead
				_, err = admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{topic: {0}})
				must(t, err)
			}
			elected, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{topic: {0}})
			must(t, err)
			if got := elected[topic][0].ErrorCode; got != sarama.ErrElectionNotNeeded {
				t.Errorf("elect: %v", got)
			}
			moving, err := admin.ListPartitionReassignments(topic, []int32{0})
			must(t, err)
			if len(moving[topic]) != 0 {
				t.Errorf("reassignments: %+v", moving)
			}
		})
	}
}
