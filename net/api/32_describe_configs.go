package api

import (
	"cmp"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/config"
)

// DescribeConfigs. Versions 0 to 4. Behaviour:
//   - version 0, which Kafka 4 has dropped, is what Sarama asks in unless it is told a newer one;
//   - topics and brokers; a broker describes only itself, and the empty broker name stands for the
//     cluster-wide dynamic settings;
//   - a null or empty list of names means all; names that are unknown are left out, as in Kafka;
//   - values of passwords are never told;
//   - synonyms in the order in which they count, the effective one first.
func init() { register(kmsg.DescribeConfigs, 0, 4, (*Handler).describeConfigs) }

func compare(a, b string) int { return cmp.Compare(a, b) }

func (h *Handler) describeConfigs(c call, req *kmsg.DescribeConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	img := h.Image()
	for i := range req.Resources {
		q := &req.Resources[i]
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = q.ResourceType, q.ResourceName
		d := describer{h: h, req: req, wanted: q.ConfigNames, resource: &r}
		err := d.describe(img)
		r.ErrorCode, r.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
		resp.Resources = append(resp.Resources, r)
	}
	return resp, nil
}

// describer fills in one resource.
type describer struct {
	h        *Handler
	req      *kmsg.DescribeConfigsRequest
	wanted   []string
	resource *kmsg.DescribeConfigsResponseResource
}

func (d *describer) describe(img *cluster.Image) error {
	name := d.resource.ResourceName
	switch d.resource.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if !validTopicName(name) {
			return refuse(InvalidTopicException, "topic name %q is invalid", name)
		}
		t := img.Topics[name]
		if t == nil {
			return refuse(UnknownTopicOrPartition, "this server does not host this topic")
		}
		d.topic(t)
		return nil
	case kmsg.ConfigResourceTypeBroker:
		if name == "" {
			d.clusterDefaults(img)
			return nil
		}
		if id, err := strconv.ParseInt(name, 10, 32); err != nil || int32(id) != d.h.BrokerID {
			return refuse(InvalidRequest, "unexpected broker id, expected %d or empty string, but received %s", d.h.BrokerID, name)
		}
		d.broker()
		return nil
	case kmsg.ConfigResourceTypeBrokerLogger:
		return refuse(InvalidRequest, "loggers have no levels of their own here")
	}
	return refuse(InvalidRequest, "resource type %d is not supported", d.resource.ResourceType)
}

func (d *describer) wants(name string) bool {
	if len(d.wanted) == 0 {
		return true
	}
	for _, w := range d.wanted {
		if w == name {
			return true
		}
	}
	return false
}

func (d *describer) topic(t *cluster.Topic) {
	for _, def := range config.TopicDefs() {
		if !d.wants(def.Name) {
			continue
		}
		value, source := d.h.Config.TopicValue(def.Name, t.Configs)
		e := d.entry(def, value, source)
		e.IsDefault = source != config.TopicConfig
		if d.req.IncludeSynonyms {
			if v, ok := t.Configs[def.Name]; ok {
				e.ConfigSynonyms = append(e.ConfigSynonyms, d.synonym(def, def.Name, v, config.TopicConfig))
			}
			if def.Synonym != "" {
				d.brokerSynonyms(&e, def.Synonym)
			} else if !def.Null {
				e.ConfigSynonyms = append(e.ConfigSynonyms, d.synonym(def, def.Name, def.Default, config.Default))
			}
		}
		d.resource.Configs = append(d.resource.Configs, e)
	}
}

func (d *describer) broker() {
	for _, def := range config.BrokerDefs() {
		if !d.wants(def.Name) {
			continue
		}
		value, source := d.h.Config.Value(def.Name)
		e := d.entry(def, value, source)
		e.ReadOnly = !config.IsDynamic(def.Name)
		if d.req.IncludeSynonyms {
			d.brokerSynonyms(&e, def.Name)
		}
		d.resource.Configs = append(d.resource.Configs, e)
	}
}

// clusterDefaults are the dynamic settings that hold for all brokers, as the coordinator has them.
func (d *describer) clusterDefaults(img *cluster.Image) {
	for _, def := range config.BrokerDefs() {
		if v, ok := img.BrokerConfigs[""][def.Name]; ok && d.wants(def.Name) {
			e := d.entry(def, v, config.DynamicDefault)
			if d.req.IncludeSynonyms {
				e.ConfigSynonyms = append(e.ConfigSynonyms, d.synonym(def, def.Name, v, config.DynamicDefault))
			}
			d.resource.Configs = append(d.resource.Configs, e)
		}
	}
}

// brokerSynonyms appends the values that a broker setting was given, and its default.
func (d *describer) brokerSynonyms(e *kmsg.DescribeConfigsResponseResourceConfig, name string) {
	for _, syn := range d.h.Config.Synonyms(name) {
		def, _ := config.BrokerDef(syn.Name)
		e.ConfigSynonyms = append(e.ConfigSynonyms, d.synonym(def, syn.Name, syn.Value, syn.Source))
	}
}

func (d *describer) entry(def config.Def, value string, source config.Source) kmsg.DescribeConfigsResponseResourceConfig {
	e := kmsg.NewDescribeConfigsResponseResourceConfig()
	e.Name, e.Source, e.ConfigType = def.Name, kmsg.ConfigSource(source), kmsg.ConfigType(def.Type)
	e.IsDefault = source == config.Default
	e.IsSensitive = def.Type == config.Password
	e.Value = shown(def, value)
	if d.req.IncludeDocumentation {
		e.Documentation = kmsg.StringPtr(def.Doc)
	}
	return e
}

func (d *describer) synonym(def config.Def, name, value string, source config.Source) kmsg.DescribeConfigsResponseResourceConfigConfigSynonym {
	s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
	s.Name, s.Value, s.Source = name, shown(def, value), kmsg.ConfigSource(source)
	return s
}

// shown is what a client may see of a value: null where there is none.
func shown(def config.Def, value string) *string {
	if def.Type == config.Password || (def.Null && value == "") {
		return nil
	}
	return &value
}
