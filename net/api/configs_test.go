package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/net/api"
)

const (
	topicConfig  = kmsg.ConfigResourceTypeTopic
	brokerConfig = kmsg.ConfigResourceTypeBroker
)

// alterAll replaces a resource's settings by name and value.
func alterAll(kind kmsg.ConfigResourceType, name string, settings ...string) *kmsg.AlterConfigsRequest {
	req := kmsg.NewPtrAlterConfigsRequest()
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for i := 0; i < len(settings); i += 2 {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = settings[i], &settings[i+1]
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	return req
}

type configOp = kmsg.IncrementalAlterConfigsRequestResourceConfig

func op(o kmsg.IncrementalAlterConfigOp, name string, value *string) configOp {
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op, c.Value = name, o, value
	return c
}

func set(name, value string) configOp  { return op(kmsg.IncrementalAlterConfigOpSet, name, &value) }
func unset(name string) configOp       { return op(kmsg.IncrementalAlterConfigOpDelete, name, nil) }
func plus(name, value string) configOp { return op(kmsg.IncrementalAlterConfigOpAppend, name, &value) }
func minus(name, value string) configOp {
	return op(kmsg.IncrementalAlterConfigOpSubtract, name, &value)
}

func alter(kind kmsg.ConfigResourceType, name string, ops ...configOp) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kind, name, ops
	req.Resources = append(req.Resources, r)
	return req
}

func (p *peer) alter(want api.Code, kind kmsg.ConfigResourceType, name string, ops ...configOp) {
	p.t.Helper()
	got := ask[*kmsg.IncrementalAlterConfigsResponse](p, 1, alter(kind, name, ops...)).Resources[0]
	text := ""
	if got.ErrorMessage != nil {
		text = *got.ErrorMessage
	}
	code(p.t, fmt.Sprintf("%v %q %v (%s)", kind, name, ops, text), got.ErrorCode, want)
}

// shown is a setting as DescribeConfigs tells it: value, source, and synonyms with theirs.
func (p *peer) shown(kind kmsg.ConfigResourceType, name, setting string) string {
	p.t.Helper()
	got := ask[*kmsg.DescribeConfigsResponse](p, 4, describe(kind, name, setting)).Resources[0]
	code(p.t, name, got.ErrorCode, api.None)
	var out []string
	for _, c := range got.Configs {
		out = append(out, fmt.Sprintf("%s:%d", *c.Value, c.Source))
		for _, s := range c.ConfigSynonyms {
			out = append(out, fmt.Sprintf("%s=%s:%d", s.Name, *s.Value, s.Source))
		}
	}
	return strings.Join(out, " ")
}

func (b *broker) logConfig(topic string) string {
	c := b.store.Get(store.TP{Topic: topic}).Config()
	return fmt.Sprintf("retention %d segment %d max %d", c.RetentionMs, c.SegmentBytes, c.MaxMessageBytes)
}

func (b *broker) wantLog(topic, want string) {
	b.t.Helper()
	if got := b.logConfig(topic); got != want {
		b.t.Fatalf("%s: %s, want %s", topic, got, want)
	}
}

func TestAlterTopicConfigs(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1, "segment.bytes", "1000000")
	p := b.dial()
	p.alter(api.None, topicConfig, "t", set("retention.ms", "1000"), set("max.message.bytes", "300"))
	b.wantLog("t", "retention 1000 segment 1000000 max 300")
	code(t, "a batch that is too large now", p.produce("t", 0, records(1000, strings.Repeat("x", 400))).ErrorCode, api.MessageTooLarge)
	if got, want := p.shown(topicConfig, "t", "retention.ms"), "1000:1 retention.ms=1000:1 log.retention.hours=168:5"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	p.alter(api.None, topicConfig, "t", unset("max.message.bytes"), unset("retention.bytes"))
	b.wantLog("t", "retention 1000 segment 1000000 max 1048588")

	dry := alter(topicConfig, "t", set("retention.ms", "5"))
	dry.ValidateOnly = true
	code(t, "dry run", ask[*kmsg.IncrementalAlterConfigsResponse](p, 0, dry).Resources[0].ErrorCode, api.None)
	dry.Resources[0].Configs[0] = set("retention.ms", "x")
	code(t, "wrong dry run", ask[*kmsg.IncrementalAlterConfigsResponse](p, 0, dry).Resources[0].ErrorCode, api.InvalidConfig)
	b.wantLog("t", "retention 1000 segment 1000000 max 1048588")

	p.alter(api.InvalidConfig, topicConfig, "t", set("retention.ms", "7"), set("segment.bytes", "one"))
	p.alter(api.InvalidConfig, topicConfig, "t", set("no.such.setting", "1"))
	p.alter(api.InvalidConfig, topicConfig, "t", plus("no.such.setting", "1"))
	p.alter(api.InvalidConfig, topicConfig, "t", plus("retention.ms", "1"))
	p.alter(api.InvalidConfig, topicConfig, "t", minus("cleanup.policy", "delete"))
	p.alter(api.InvalidRequest, topicConfig, "t", op(kmsg.IncrementalAlterConfigOpSet, "retention.ms", nil))
	p.alter(api.InvalidRequest, topicConfig, "t", op(9, "retention.ms", nil))
	p.alter(api.InvalidRequest, topicConfig, "t", set("retention.ms", "1"), unset("retention.ms"))
	p.alter(api.UnknownTopicOrPartition, topicConfig, "nowhere", set("retention.ms", "1"))
	p.alter(api.InvalidTopicException, topicConfig, "no good", set("retention.ms", "1"))
	p.alter(api.InvalidRequest, topicConfig, "", set("retention.ms", "1"))
	p.alter(api.InvalidRequest, kmsg.ConfigResourceType(77), "t", set("retention.ms", "1"))
	twice := alter(topicConfig, "t", set("retention.ms", "9"))
	twice.Resources = append(twice.Resources, twice.Resources[0])
	for _, r := range ask[*kmsg.IncrementalAlterConfigsResponse](p, 0, twice).Resources {
		code(t, "resource named twice", r.ErrorCode, api.InvalidRequest)
	}
	b.wantLog("t", "retention 1000 segment 1000000 max 1048588")

	throttled := "follower.replication.throttled.replicas"
	p.alter(api.None, topicConfig, "t", plus(throttled, "0:1,1:1"))
	p.alter(api.None, topicConfig, "t", plus(throttled, "1:1,2:1"))
	p.alter(api.None, topicConfig, "t", minus(throttled, "0:1,7:7"))
	if got := p.shown(topicConfig, "t", throttled); !strings.HasPrefix(got, "1:1,2:1:1 ") {
		t.Fatalf("appended and subtracted: %s", got)
	}

	p.alter(api.InvalidConfig, topicConfig, "t", set(throttled, strings.Repeat("x", 1<<20)))
	huge := kmsg.NewPtrCreateTopicsRequest()
	ht := kmsg.NewCreateTopicsRequestTopic()
	ht.Topic, ht.NumPartitions, ht.ReplicationFactor = "huge", 1, 1
	ht.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: throttled, Value: kmsg.StringPtr(strings.Repeat("x", 2<<20))}}
	huge.Topics = append(huge.Topics, ht)
	code(t, "huge settings", ask[*kmsg.CreateTopicsResponse](p, 5, huge).Topics[0].ErrorCode, api.InvalidConfig)

	// The old request replaces everything.
	code(t, "replace", ask[*kmsg.AlterConfigsResponse](p, 2, alterAll(topicConfig, "t", "max.message.bytes", "500")).Resources[0].ErrorCode, api.None)
	b.wantLog("t", "retention 604800000 segment 1073741824 max 500")
	code(t, "replace wrongly", ask[*kmsg.AlterConfigsResponse](p, 2, alterAll(topicConfig, "t", "max.message.bytes", "-5")).Resources[0].ErrorCode, api.InvalidConfig)
	null := alterAll(topicConfig, "t", "max.message.bytes", "1")
	null.Resources[0].Configs[0].Value = nil
	code(t, "null", ask[*kmsg.AlterConfigsResponse](p, 2, null).Resources[0].ErrorCode, api.InvalidRequest)
	code(t, "nothing left", ask[*kmsg.AlterConfigsResponse](p, 2, alterAll(topicConfig, "t")).Resources[0].ErrorCode, api.None)
	b.wantLog("t", "retention 604800000 segment 1073741824 max 1048588")
}

func TestAlterBrokerConfigs(t *testing.T) {
	b := startBroker(t, map[string]string{"log.retention.hours": "1", "log.segment.bytes": "5000000"})
	b.create("t", 1)
	b.create("own", 1, "retention.ms", "77")
	p := b.dial()
	b.wantLog("t", "retention 3600000 segment 5000000 max 1048588")
	p.alter(api.None, brokerConfig, "", set("log.retention.ms", "1000"), set("message.max.bytes", "2000"))
	b.wantLog("t", "retention 1000 segment 5000000 max 2000")
	p.alter(api.None, brokerConfig, "1", set("log.retention.ms", "2000"))
	b.wantLog("t", "retention 2000 segment 5000000 max 2000")
	b.wantLog("own", "retention 77 segment 5000000 max 2000")
	b.create("later", 1)
	b.wantLog("later", "retention 2000 segment 5000000 max 2000")

	for _, c := range []struct {
		kind          kmsg.ConfigResourceType
		name, setting string
		want          string
	}{
		{brokerConfig, "1", "log.retention.ms", "2000:2 log.retention.ms=2000:2 log.retention.ms=1000:3 log.retention.hours=1:4 log.retention.hours=168:5"},
		{brokerConfig, "1", "message.max.bytes", "2000:3 message.max.bytes=2000:3 message.max.bytes=1048588:5"},
		{brokerConfig, "", "message.max.bytes", "2000:3 message.max.bytes=2000:3"},
		{topicConfig, "t", "retention.ms", "2000:2 log.retention.ms=2000:2 log.retention.ms=1000:3 log.retention.hours=1:4 log.retention.hours=168:5"},
		{topicConfig, "own", "retention.ms", "77:1 retention.ms=77:1 log.retention.ms=2000:2 log.retention.ms=1000:3 log.retention.hours=1:4 log.retention.hours=168:5"},
	} {
		if got := p.shown(c.kind, c.name, c.setting); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q %s: %s, want %s", c.name, c.setting, got, c.want)
		}
	}
	for _, c := range ask[*kmsg.DescribeConfigsResponse](p, 4, describe(brokerConfig, "1", "log.retention.ms", "broker.id", "num.partitions")).Resources[0].Configs {
		if c.ReadOnly != (c.Name != "log.retention.ms") {
			t.Errorf("%s: read only %v", c.Name, c.ReadOnly)
		}
	}

	for _, name := range []string{"broker.id", "num.partitions", "log.dirs", "log.retention.hours", "num.io.threads", "no.such.setting"} {
		p.alter(api.InvalidRequest, brokerConfig, "1", set(name, "1"))
	}
	for name, value := range map[string]string{"log.retention.ms": "0", "message.max.bytes": "x", "log.cleanup.policy": "compact", "log.segment.bytes": ""} {
		p.alter(api.InvalidRequest, brokerConfig, "", set(name, value))
	}
	p.alter(api.InvalidRequest, brokerConfig, "2", set("log.retention.ms", "1"))
	p.alter(api.InvalidRequest, kmsg.ConfigResourceTypeBrokerLogger, "1", set("x", "INFO"))

	p.alter(api.None, brokerConfig, "1", unset("log.retention.ms"))
	b.wantLog("t", "retention 1000 segment 5000000 max 2000")
	code(t, "replace", ask[*kmsg.AlterConfigsResponse](p, 2, alterAll(brokerConfig, "")).Resources[0].ErrorCode, api.None)
	b.wantLog("t", "retention 3600000 segment 5000000 max 1048588")
}
