package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"platter/engine/store"
)

var someID = store.UUID{0: 1, 15: 0xff}

// TestAsKafkaWrites holds our bytes against what Kafka 3.9 in ZooKeeper mode writes; the order of keys is
// free in JSON, so they are compared as values.
func TestAsKafkaWrites(t *testing.T) {
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"state": {EncodeState(State{Leader: 1, LeaderEpoch: 4, ControllerEpoch: 3, ISR: []int32{1, 2}}),
			`{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}`},
		"state of nobody": {EncodeState(State{Leader: -1, Recovering: true}),
			`{"controller_epoch":0,"leader":-1,"version":1,"leader_epoch":0,"isr":[],"leader_recovery_state":1}`},
		"topic": {EncodeAssignment(Assignment{ID: someID, Replicas: [][]int32{{1, 2}, {2, 1}}, Adding: map[int32][]int32{1: {3}}}),
			`{"removing_replicas":{},"partitions":{"0":[1,2],"1":[2,1]},"topic_id":"AQAAAAAAAAAAAAAAAAAA_w","adding_replicas":{"1":[3]},"version":3}`},
		"broker": {EncodeBroker(Broker{ID: 7, Rack: "r1", Endpoints: []Endpoint{
			{Listener: "IN", Protocol: "SSL", Host: "::1", Port: 9093}, {Listener: "EX", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}}, 1500),
			`{"features":{},"listener_security_protocol_map":{"IN":"SSL","EX":"PLAINTEXT"},"endpoints":["IN://[::1]:9093","EX://h:9092"],"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"1500","rack":"r1","platter":1}`},
		"broker without plaintext": {EncodeBroker(Broker{ID: 7}, 1),
			`{"features":{},"listener_security_protocol_map":{},"endpoints":[],"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"1","platter":1}`},
		"controller": {EncodeController(3, 1500), `{"version":2,"brokerid":3,"timestamp":"1500","kraftControllerEpoch":-1,"platter":1}`},
		"config":     {EncodeConfig(map[string]string{"retention.ms": "5"}), `{"version":1,"config":{"retention.ms":"5"}}`},
		"no config":  {EncodeConfig(nil), `{"version":1,"config":{}}`},
		"change":     {EncodeConfigChange("topics/t"), `{"version":2,"entity_path":"topics/t"}`},
		"block":      {EncodeProducerIDBlock(ProducerIDBlock{Broker: 1, First: 1000, Last: 1999}), `{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}`},
		"cluster id": {EncodeClusterID("abc"), `{"version":"1","id":"abc"}`},
		"feature":    {EncodeFeature(), `{"features":{},"version":2,"status":1}`},
		"log dir":    {EncodeLogDirEvent(2), `{"version":1,"broker":2,"event":1}`},
		"epoch":      {EncodeEpoch(12), `12`},
	} {
		var got, want any
		if err := json.Unmarshal(c.got, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestStateAt: what a state was decided by is what it tells, but never later than it was written.
func TestStateAt(t *testing.T) {
	for told, want := range map[int64]int64{0: 50, 40: 40, 60: 50} {
		if s := (State{Known: told}).At(3, 50); s.Known != want || s.ZkVersion != 3 {
			t.Errorf("told %d: %+v", told, s)
		}
	}
}

func TestBackAndForth(t *testing.T) {
	for _, s := range []State{{Leader: 1, LeaderEpoch: 4, ControllerEpoch: 3, ISR: []int32{1, 2}, Known: 77}, {Leader: -1, ISR: []int32{}, Recovering: true}} {
		got, err := DecodeState(EncodeState(s))
		if d := cmp.Diff(s, got); d != "" || err != nil {
			t.Error(d, err)
		}
	}
	a := Assignment{ID: someID, Replicas: [][]int32{{1, 2}, {2, 1}}, Adding: map[int32][]int32{1: {3}}}
	got, err := DecodeAssignment(EncodeAssignment(a))
	if d := cmp.Diff(a, got); d != "" || err != nil {
		t.Error(d, err)
	}
	b := Broker{ID: 7, Rack: "r1", Endpoints: []Endpoint{
		{Listener: "IN", Protocol: "SSL", Host: "::1", Port: 9093}, {Listener: "EX", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}}
	r, err := DecodeBroker(7, EncodeBroker(b, 1500))
	if d := cmp.Diff(Registration{Broker: b, TimestampMs: 1500}, r); d != "" || err != nil {
		t.Error(d, err)
	}
	if id, foreign, err := DecodeController(EncodeController(3, 1)); id != 3 || foreign || err != nil {
		t.Error(id, foreign, err)
	}
	block := ProducerIDBlock{Broker: 1, First: 1000, Last: 1999}
	if got, err := DecodeProducerIDBlock(EncodeProducerIDBlock(block)); got != block || err != nil {
		t.Error(got, err)
	}
	if e, err := DecodeConfigChange(EncodeConfigChange("topics/t")); e != "topics/t" || err != nil {
		t.Error(e, err)
	}
}

// TestOthers: what older Kafka and other tools write.
func TestOthers(t *testing.T) {
	a, err := DecodeAssignment([]byte(`{"version":1,"partitions":{"1":[2],"0":[1]}}`))
	if d := cmp.Diff(Assignment{Replicas: [][]int32{{1}, {2}}}, a); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, s := range []string{
		`{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}`,
		`{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],"rack":null,"jmx_port":-1,"host":"h","timestamp":"1","port":9092,"version":4}`,
		`{"jmx_port":-1,"timestamp":"1","host":"h","version":2,"port":9092,"endpoints":["PLAINTEXT://h:9092"]}`,
	} {
		r, err := DecodeBroker(1, []byte(s))
		if err != nil || !r.Foreign || len(r.Broker.Endpoints) != 1 || r.Broker.Endpoints[0] != (Endpoint{"PLAINTEXT", "PLAINTEXT", "h", 9092}) {
			t.Errorf("%s: %+v, %v", s, r, err)
		}
	}
	if id, foreign, err := DecodeController([]byte(`{"version":1,"brokerid":5,"timestamp":"1"}`)); id != 5 || !foreign || err != nil {
		t.Error(id, foreign, err)
	}
	if e, err := DecodeConfigChange([]byte(`{"version":1,"entity_type":"topics","entity_name":"t"}`)); e != "topics/t" || err != nil {
		t.Error(e, err)
	}
	if c, err := DecodeConfig(nil); err != nil || len(c) != 0 {
		t.Error(c, err)
	}
}

func TestMalformed(t *testing.T) {
	for name, err := range map[string]error{
		"state":         second(DecodeState([]byte(`{"leader":1}`))),
		"state, leader": second(DecodeState([]byte(`{"leader":-5,"leader_epoch":0,"isr":[]}`))),
		"gap":           second(DecodeAssignment([]byte(`{"partitions":{"0":[1],"2":[1]}}`))),
		"twice":         second(DecodeAssignment([]byte(`{"partitions":{"0":[1,1]}}`))),
		"same number":   second(DecodeAssignment([]byte(`{"partitions":{"0":[1],"00":[1]}}`))),
		"no replicas":   second(DecodeAssignment([]byte(`{"partitions":{"0":[]}}`))),
		"no partitions": second(DecodeAssignment([]byte(`{}`))),
		"negative":      second(DecodeAssignment([]byte(`{"partitions":{"-1":[1]}}`))),
		"id":            second(DecodeAssignment([]byte(`{"partitions":{"0":[1]},"topic_id":"x"}`))),
		"endpoint":      second(DecodeBroker(1, []byte(`{"version":5,"endpoints":["nonsense"]}`))),
		"port":          second(DecodeBroker(1, []byte(`{"version":5,"endpoints":["A://h:99999"]}`))),
		"block":         second(DecodeProducerIDBlock([]byte(`{"block_start":"9","block_end":"1"}`))),
		"cluster":       second(DecodeClusterID([]byte(`{}`))),
		"epoch":         second(DecodeEpoch([]byte(`-1`))),
		"change":        second(DecodeConfigChange([]byte(`{"version":3}`))),
		"broker id":     second(ParseBrokerID("x")),
	} {
		if !errors.Is(err, ErrZnode) && name != "broker id" || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}`,
		`{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2],"newest_broker_epoch":99}`,
		`{"removing_replicas":{},"partitions":{"0":[1,2],"1":[2,1]},"topic_id":"AQAAAAAAAAAAAAAAAAAA_w","adding_replicas":{"1":[3]},"version":3}`,
		`{"features":{},"listener_security_protocol_map":{"IN":"SSL"},"endpoints":["IN://[::1]:9093"],"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"1500","rack":"r1","platter":1}`,
		`{"version":2,"brokerid":3,"timestamp":"1500","kraftControllerEpoch":-1}`,
		`{"version":1,"config":{"retention.ms":"5"}}`,
		`{"version":2,"entity_path":"topics/t"}`,
		`{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}`,
		`{"version":"1","id":"abc"}`, `12`, `null`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if s, err := DecodeState(p); err == nil {
			again, err := DecodeState(EncodeState(s))
			if d := cmp.Diff(s, again); d != "" || err != nil {
				t.Error(d, err)
			}
		}
		if a, err := DecodeAssignment(p); err == nil {
			again, err := DecodeAssignment(EncodeAssignment(a))
			if err != nil || !bytes.Equal(EncodeAssignment(a), EncodeAssignment(again)) {
				t.Error(a, again, err)
			}
		}
		if r, err := DecodeBroker(1, p); err == nil {
			EncodeBroker(r.Broker, 1)
		}
		DecodeController(p)
		DecodeConfig(p)
		DecodeConfigChange(p)
		DecodeProducerIDBlock(p)
		DecodeClusterID(p)
		DecodeEpoch(p)
		DecodeLogDirEvent(p)
	})
}

func TestImage(t *testing.T) {
	overrides := map[string]map[string]string{"a": {"x": "1"}}
	configs := func(topic string) map[string]string { return overrides[topic] }
	other := store.UUID{9}
	empty := NewImage("c")
	one := empty.Apply(Update{
		ControllerID: 1, ControllerEpoch: 2, Full: true,
		Brokers: []Broker{{ID: 2}, {ID: 1}},
		Topics: []TopicUpdate{
			{Name: "a", ID: someID, Partitions: map[int32]Partition{1: {Leader: 1}, 0: {Leader: 2}}},
			{Name: "b", ID: other, Partitions: map[int32]Partition{0: {Leader: 1}}},
		},
	}, configs)
	if len(empty.Topics) != 0 || empty.ControllerID != -1 {
		t.Error("an image was changed")
	}
	if _, ok := one.Broker(2); !ok || one.Brokers[0].ID != 1 {
		t.Errorf("brokers: %+v", one.Brokers)
	}
	if topic := one.TopicByID(someID); topic == nil || topic != one.Topic("a") || topic.Configs["x"] != "1" || topic.Partitions[0].Leader != 2 {
		t.Errorf("topic: %+v", topic)
	}
	two := one.Apply(Update{Brokers: one.Brokers, Topics: []TopicUpdate{
		{Name: "a", ID: someID, Partitions: map[int32]Partition{2: {Leader: 7}}},
		{Name: "b", ID: other, Deleted: true},
	}}, configs)
	if n := len(one.Topic("a").Partitions); n != 2 || one.Topic("b") == nil {
		t.Error("an image was changed")
	}
	if p := two.Topic("a").Partitions; len(p) != 3 || p[0].Leader != 2 || p[2].Leader != 7 || two.TopicByID(other) != nil {
		t.Errorf("partitions: %+v", p)
	}
	three := two.Apply(Update{Topics: []TopicUpdate{{Name: "a", ID: other, Partitions: map[int32]Partition{0: {Leader: 1}}}}}, configs)
	if three.TopicByID(someID) != nil || len(three.TopicByID(other).Partitions) != 1 {
		t.Error("another topic of the same name keeps something of the former one")
	}
	if four := three.WithTopicConfigs("a", map[string]string{"x": "2"}); four.TopicByID(other).Configs["x"] != "2" || three.Topic("a").Configs["x"] != "1" {
		t.Error("overrides")
	}
}

func TestNewUUID(t *testing.T) {
	for range 1000 {
		if s := NewUUID().String(); s[0] == '-' || len(s) != 22 {
			t.Fatal(s)
		}
	}
}
