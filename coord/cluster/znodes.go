package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"platter/engine/checkpoint"
	"platter/engine/store"
)

// ErrZnode: a znode holds something that Kafka would not have written.
var ErrZnode = errors.New("malformed znode")

// State is one partition's state znode. ZkVersion is its Stat's.
type State struct {
	Leader          int32
	LeaderEpoch     int32
	ControllerEpoch int32
	ISR             []int32
	Recovering      bool // leader_recovery_state 1: after an unclean election (KIP-704)
	ZkVersion       int32
	// Known is the newest broker epoch that the controller knew when it decided this: who has registered since is not the
	// member that was meant, even where the state was written after that. 0: not told, as by Kafka.
	Known int64
}

// At completes a state by its znode's Stat. Where the state does not tell what was known, all is taken to have been that was
// there when it was written.
func (s State) At(version int32, mzxid int64) State {
	s.ZkVersion = version
	if s.Known <= 0 || s.Known > mzxid {
		s.Known = mzxid
	}
	return s
}

// Assignment is a topic's znode: replicas by partition; adding and removing while a reassignment runs.
type Assignment struct {
	ID       store.UUID // zero: written by something older than Kafka 2.8
	Replicas [][]int32
	Adding   map[int32][]int32
	Removing map[int32][]int32
}

// PartitionCountMax bounds what a topic znode may announce: more does not fit into jute.maxbuffer.
const PartitionCountMax = 200_000

type stateJSON struct {
	ControllerEpoch int32   `json:"controller_epoch"`
	Leader          int32   `json:"leader"`
	Version         int     `json:"version"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
	Recovery        int     `json:"leader_recovery_state,omitempty"`
	Known           int64   `json:"newest_broker_epoch,omitempty"` // Platter's own; Kafka and its tools pass over it
}

// EncodeState is the value of /brokers/topics/T/partitions/P/state.
func EncodeState(s State) []byte {
	j := stateJSON{ControllerEpoch: s.ControllerEpoch, Leader: s.Leader, Version: 1, LeaderEpoch: s.LeaderEpoch, ISR: notNil(s.ISR), Known: s.Known}
	if s.Recovering {
		j.Recovery = 1
	}
	return encode(j)
}

// DecodeState reads it back.
func DecodeState(p []byte) (State, error) {
	j := stateJSON{Leader: -2, LeaderEpoch: -1}
	if err := decode(p, &j); err != nil {
		return State{}, err
	}
	if j.Leader < -1 || j.LeaderEpoch < 0 || j.ISR == nil || j.Recovery < 0 || j.Recovery > 1 {
		return State{}, fmt.Errorf("%w: partition state %.200q", ErrZnode, p)
	}
	return State{Leader: j.Leader, LeaderEpoch: j.LeaderEpoch, ControllerEpoch: j.ControllerEpoch, ISR: j.ISR, Recovering: j.Recovery == 1, Known: max(j.Known, 0)}, nil
}

type topicJSON struct {
	Removing   map[string][]int32 `json:"removing_replicas"`
	Partitions map[string][]int32 `json:"partitions"`
	TopicID    string             `json:"topic_id,omitempty"`
	Adding     map[string][]int32 `json:"adding_replicas"`
	Version    int                `json:"version"`
}

// EncodeAssignment is the value of /brokers/topics/T, version 3.
func EncodeAssignment(a Assignment) []byte {
	j := topicJSON{Version: 3, Partitions: make(map[string][]int32, len(a.Replicas))}
	for p, replicas := range a.Replicas {
		j.Partitions[strconv.Itoa(p)] = notNil(replicas)
	}
	j.Adding, j.Removing = byName(a.Adding), byName(a.Removing)
	if a.ID != (store.UUID{}) {
		j.TopicID = a.ID.String()
	}
	return encode(j)
}

// DecodeAssignment reads versions 1 to 3. Partitions must be numbered from 0 without a gap, each with
// at least one replica and none twice.
func DecodeAssignment(p []byte) (Assignment, error) {
	var j topicJSON
	if err := decode(p, &j); err != nil {
		return Assignment{}, err
	}
	if len(j.Partitions) == 0 || len(j.Partitions) > PartitionCountMax {
		return Assignment{}, fmt.Errorf("%w: topic with %d partitions", ErrZnode, len(j.Partitions))
	}
	a := Assignment{Replicas: make([][]int32, len(j.Partitions))}
	for name, replicas := range j.Partitions {
		n, err := strconv.ParseInt(name, 10, 32)
		if err != nil || n < 0 || n >= int64(len(a.Replicas)) || a.Replicas[n] != nil {
			return Assignment{}, fmt.Errorf("%w: topic with %d partitions has one called %.40q", ErrZnode, len(a.Replicas), name)
		}
		if len(replicas) == 0 || !distinct(replicas) {
			return Assignment{}, fmt.Errorf("%w: replicas of partition %d: %v", ErrZnode, n, replicas)
		}
		a.Replicas[n] = replicas
	}
	var err error
	if a.Adding, err = byNumber(j.Adding); err != nil {
		return Assignment{}, err
	}
	if a.Removing, err = byNumber(j.Removing); err != nil {
		return Assignment{}, err
	}
	if j.TopicID != "" {
		if a.ID, err = checkpoint.ParseUUID(j.TopicID); err != nil {
			return Assignment{}, fmt.Errorf("%w: %w", ErrZnode, err)
		}
	}
	return a, nil
}

type configJSON struct {
	Version int               `json:"version"`
	Config  map[string]string `json:"config"`
}

// EncodeConfig is the value of /config/K/E.
func EncodeConfig(c map[string]string) []byte {
	if c == nil {
		c = map[string]string{}
	}
	return encode(configJSON{Version: 1, Config: c})
}

// DecodeConfig reads it back; an empty znode is no overrides.
func DecodeConfig(p []byte) (map[string]string, error) {
	if len(p) == 0 {
		return map[string]string{}, nil
	}
	var j configJSON
	if err := decode(p, &j); err != nil {
		return nil, err
	}
	if j.Config == nil {
		j.Config = map[string]string{}
	}
	return j.Config, nil
}

// EncodeConfigChange and DecodeConfigChange are the value of /config/changes/config_change_N:
// entity is "topics/t" or "brokers/0".
func EncodeConfigChange(entity string) []byte {
	return encode(struct {
		Version int    `json:"version"`
		Entity  string `json:"entity_path"`
	}{2, entity})
}

// DecodeConfigChange reads version 2, and version 1 (entity_type and entity_name).
func DecodeConfigChange(p []byte) (entity string, err error) {
	var j struct {
		Version int    `json:"version"`
		Entity  string `json:"entity_path"`
		Type    string `json:"entity_type"`
		Name    string `json:"entity_name"`
	}
	if err := decode(p, &j); err != nil {
		return "", err
	}
	switch {
	case j.Version == 1 && j.Type != "" && j.Name != "":
		return j.Type + "/" + j.Name, nil
	case j.Version == 2 && j.Entity != "":
		return j.Entity, nil
	}
	return "", fmt.Errorf("%w: config change %.200q", ErrZnode, p)
}

// ProducerIDBlock is a range of producer ids that a broker took: First to Last, both inclusive.
type ProducerIDBlock struct {
	Broker      int32
	First, Last int64
}

type blockJSON struct {
	Version int    `json:"version"`
	Broker  int32  `json:"broker"`
	Start   string `json:"block_start"`
	End     string `json:"block_end"`
}

// EncodeProducerIDBlock is the value of /latest_producer_id_block.
func EncodeProducerIDBlock(b ProducerIDBlock) []byte {
	return encode(blockJSON{Version: 1, Broker: b.Broker, Start: strconv.FormatInt(b.First, 10), End: strconv.FormatInt(b.Last, 10)})
}

// DecodeProducerIDBlock reads it back.
func DecodeProducerIDBlock(p []byte) (ProducerIDBlock, error) {
	var j blockJSON
	if err := decode(p, &j); err != nil {
		return ProducerIDBlock{}, err
	}
	first, err1 := strconv.ParseInt(j.Start, 10, 64)
	last, err2 := strconv.ParseInt(j.End, 10, 64)
	if err1 != nil || err2 != nil || first < 0 || last < first {
		return ProducerIDBlock{}, fmt.Errorf("%w: producer id block %.200q", ErrZnode, p)
	}
	return ProducerIDBlock{Broker: j.Broker, First: first, Last: last}, nil
}

// EncodeClusterID and DecodeClusterID are the value of /cluster/id; the version is a string, as Kafka has it.
func EncodeClusterID(id string) []byte {
	return encode(struct {
		Version string `json:"version"`
		ID      string `json:"id"`
	}{"1", id})
}

// DecodeClusterID reads it back.
func DecodeClusterID(p []byte) (string, error) {
	var j struct {
		ID string `json:"id"`
	}
	if err := decode(p, &j); err != nil {
		return "", err
	}
	if j.ID == "" || len(j.ID) > 128 {
		return "", fmt.Errorf("%w: cluster id %.200q", ErrZnode, p)
	}
	return j.ID, nil
}

// EncodeFeature is the value of /feature of a cluster without finalized features, as Kafka's controller
// writes it with inter.broker.protocol.version 3.3 and newer (KIP-584).
func EncodeFeature() []byte {
	return encode(struct {
		Features struct{} `json:"features"`
		Version  int      `json:"version"`
		Status   int      `json:"status"`
	}{Version: 2, Status: 1})
}

// EncodeLogDirEvent is the value of /log_dir_event_notification/log_dir_event_N: a directory of the
// broker failed.
func EncodeLogDirEvent(broker int32) []byte {
	return encode(struct {
		Version int   `json:"version"`
		Broker  int32 `json:"broker"`
		Event   int   `json:"event"`
	}{1, broker, 1})
}

// DecodeLogDirEvent gives the broker.
func DecodeLogDirEvent(p []byte) (int32, error) {
	var j struct {
		Broker *int32 `json:"broker"`
	}
	if err := decode(p, &j); err != nil {
		return 0, err
	}
	if j.Broker == nil || *j.Broker < 0 {
		return 0, fmt.Errorf("%w: log directory event %.200q", ErrZnode, p)
	}
	return *j.Broker, nil
}

// EncodeEpoch and DecodeEpoch are the value of /controller_epoch.
func EncodeEpoch(e int32) []byte { return strconv.AppendInt(nil, int64(e), 10) }

// DecodeEpoch reads it back.
func DecodeEpoch(p []byte) (int32, error) {
	e, err := strconv.ParseInt(strings.TrimSpace(string(p)), 10, 32)
	if err != nil || e < 0 {
		return 0, fmt.Errorf("%w: controller epoch %.40q", ErrZnode, p)
	}
	return int32(e), nil
}

func encode(v any) []byte {
	p, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("cluster: %T does not marshal: %v", v, err)) // plain structs always do
	}
	return p
}

func decode(p []byte, v any) error {
	if err := json.Unmarshal(p, v); err != nil {
		return fmt.Errorf("%w: %v in %.200q", ErrZnode, err, p)
	}
	return nil
}

func byName(m map[int32][]int32) map[string][]int32 {
	out := make(map[string][]int32, len(m))
	for p, replicas := range m {
		out[strconv.Itoa(int(p))] = replicas
	}
	return out
}

func byNumber(m map[string][]int32) (map[int32][]int32, error) {
	if len(m) == 0 {
		return nil, nil
	}
	out := make(map[int32][]int32, len(m))
	for name, replicas := range m {
		n, err := strconv.ParseInt(name, 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: partition called %.40q", ErrZnode, name)
		}
		out[int32(n)] = replicas
	}
	return out, nil
}

func distinct(ids []int32) bool {
	for i, id := range ids {
		if id < 0 {
			return false
		}
		for _, other := range ids[:i] {
			if id == other {
				return false
			}
		}
	}
	return true
}

func notNil(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}
