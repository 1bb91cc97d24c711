package api

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/config"
)

// AlterConfigs. Versions 0 to 2. Behaviour:
//   - the settings given replace all overrides of the resource: a topic, this very broker, or with the empty
//     name all brokers;
//   - a wrong value is INVALID_CONFIG, and nothing of that resource is changed; a broker setting that
//     cannot change while it runs is INVALID_REQUEST, and so is a resource that is named twice;
//   - the answer comes when the change is durable, and in effect on this broker.
func init() { register(kmsg.AlterConfigs, 0, 2, (*Handler).alterConfigs) }

// alterWaitMs bounds a change of settings: the requests carry no bound of their own.
const alterWaitMs = 30_000

func (h *Handler) alterConfigs(c call, req *kmsg.AlterConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterConfigsResponse()
	count := map[resource]int{}
	for i := range req.Resources {
		count[resource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	ctx, cancel := adminContext(c, alterWaitMs)
	defer cancel()
	for i := range req.Resources {
		q := &req.Resources[i]
		of := resource{q.ResourceType, q.ResourceName}
		next, err := settingsOf(q.Configs)
		if err == nil {
			err = h.alter(ctx, of, count[of], req.ValidateOnly, func(map[string]string) (map[string]string, error) { return next, nil })
		}
		r := kmsg.NewAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = q.ResourceType, q.ResourceName
		r.ErrorCode, r.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
		resp.Resources = append(resp.Resources, r)
	}
	return resp, nil
}

func settingsOf(given []kmsg.AlterConfigsRequestResourceConfig) (map[string]string, error) {
	out := make(map[string]string, len(given))
	for i := range given {
		name := given[i].Name
		if given[i].Value == nil {
			return nil, refuse(InvalidRequest, "null value not supported for: %s", name)
		}
		if _, twice := out[name]; twice {
			return nil, refuse(InvalidRequest, "error due to duplicate config keys: %s", name)
		}
		out[name] = *given[i].Value
	}
	return out, nil
}

// resource is whose settings are to be changed.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// def finds a setting that the resource can have.
func (r resource) def(name string) (config.Def, bool) {
	if r.kind == kmsg.ConfigResourceTypeTopic {
		return config.Topic(name)
	}
	return config.BrokerDef(name)
}

// alter changes one resource's overrides to what change makes of them; times is how often the request
// names it.
func (h *Handler) alter(ctx context.Context, r resource, times int, dry bool, change func(map[string]string) (map[string]string, error)) error {
	if times > 1 {
		return refuse(InvalidRequest, "each resource must appear at most once")
	}
	checked := func(check func(map[string]string) error, bad Code) func(map[string]string) (map[string]string, error) {
		return func(old map[string]string) (map[string]string, error) {
			next, err := change(old)
			if err != nil {
				return nil, err
			}
			if err := check(next); err != nil {
				return nil, refuse(bad, "%v", err)
			}
			return next, nil
		}
	}
	switch r.kind {
	case kmsg.ConfigResourceTypeTopic:
		if r.name == "" {
			return refuse(InvalidRequest, "default topic resources are not allowed")
		}
		if !validTopicName(r.name) {
			return refuse(InvalidTopicException, "topic name %q is invalid", r.name)
		}
		if h.Image().Topics[r.name] == nil {
			return refuse(UnknownTopicOrPartition, "the topic '%s' does not exist", r.name)
		}
		check := func(next map[string]string) error { return config.CheckTopic(r.name, next) }
		return h.Overrides.AlterTopic(ctx, r.name, checked(check, InvalidConfig), dry)
	case kmsg.ConfigResourceTypeBroker:
		id := int32(-1)
		if r.name != "" {
			n, err := strconv.ParseInt(r.name, 10, 32)
			if err != nil || int32(n) != h.BrokerID {
				return refuse(InvalidRequest, "unexpected broker id, expected %d or empty string, but received %s", h.BrokerID, r.name)
			}
			id = int32(n)
		}
		return h.Overrides.AlterBroker(ctx, id, checked(config.CheckDynamic, InvalidRequest), dry)
	case kmsg.ConfigResourceTypeBrokerLogger:
		return refuse(InvalidRequest, "loggers have no levels of their own here")
	}
	return refuse(InvalidRequest, "resource type %d is not supported", r.kind)
}
