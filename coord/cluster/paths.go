package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// Paths of Kafka's znodes, below the chroot.
const (
	BrokerIDsPath        = "/brokers/ids"
	BrokerSeqIDPath      = "/brokers/seqid"
	TopicsPath           = "/brokers/topics"
	ControllerPath       = "/controller"
	ControllerEpochPath  = "/controller_epoch"
	ConfigTopicsPath     = "/config/topics"
	ConfigBrokersPath    = "/config/brokers"
	ConfigChangesPath    = "/config/changes"
	DeleteTopicsPath     = "/admin/delete_topics"
	ClusterIDPath        = "/cluster/id"
	ProducerIDBlockPath  = "/latest_producer_id_block"
	FeaturePath          = "/feature"
	LogDirEventsPath     = "/log_dir_event_notification"
	configChangePrefix   = "config_change_"
	logDirEventPrefix    = "log_dir_event_"
	DefaultBrokersEntity = "<default>"
)

// PersistentPaths are what every broker makes sure of at start, as Kafka does (ZkData.PersistentZkPaths).
var PersistentPaths = []string{
	"/consumers", BrokerIDsPath, TopicsPath, ConfigChangesPath, DeleteTopicsPath, BrokerSeqIDPath,
	"/isr_change_notification", ProducerIDBlockPath, LogDirEventsPath,
	ConfigTopicsPath, "/config/clients", "/config/users", ConfigBrokersPath, "/config/ips",
}

// BrokerPath, TopicPath and the like build the path of one entity.
func BrokerPath(id int32) string             { return BrokerIDsPath + "/" + strconv.Itoa(int(id)) }
func TopicPath(topic string) string          { return TopicsPath + "/" + topic }
func PartitionsPath(topic string) string     { return TopicPath(topic) + "/partitions" }
func TopicConfigPath(topic string) string    { return ConfigTopicsPath + "/" + topic }
func DeleteTopicPath(topic string) string    { return DeleteTopicsPath + "/" + topic }
func ConfigChangePath(child string) string   { return ConfigChangesPath + "/" + child }
func LogDirEventPath(child string) string    { return LogDirEventsPath + "/" + child }
func ConfigChangeSequencePath() string       { return ConfigChangesPath + "/" + configChangePrefix }
func LogDirEventSequencePath() string        { return LogDirEventsPath + "/" + logDirEventPrefix }
func StatePath(topic string, p int32) string { return PartitionPath(topic, p) + "/state" }
func PartitionPath(topic string, p int32) string {
	return PartitionsPath(topic) + "/" + strconv.Itoa(int(p))
}

// ParseBrokerID reads the name of a child of /brokers/ids.
func ParseBrokerID(name string) (int32, error) {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%s/%s: not a broker id", BrokerIDsPath, name)
	}
	return int32(id), nil
}

// ConfigEntity splits the entity_path of a config change: "topics/t" gives "topics", "t".
func ConfigEntity(path string) (kind, name string, ok bool) {
	kind, name, ok = strings.Cut(path, "/")
	return kind, name, ok && name != "" && !strings.Contains(name, "/")
}
