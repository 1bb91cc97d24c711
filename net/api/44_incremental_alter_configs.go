package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/config"
)

// IncrementalAlterConfigs (KIP-339). Versions 0 and 1. Behaviour as AlterConfigs, but that settings which are
// not named stay:
//   - append and subtract go with settings that are lists, and begin with the value in effect;
//   - to delete what is not set is no error.
func init() {
	register(kmsg.IncrementalAlterConfigs, 0, 1, (*Handler).incrementalAlterConfigs)
}

func (h *Handler) incrementalAlterConfigs(c call, req *kmsg.IncrementalAlterConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	count := map[resource]int{}
	for i := range req.Resources {
		count[resource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	ctx, cancel := adminContext(c, alterWaitMs)
	defer cancel()
	for i := range req.Resources {
		q := &req.Resources[i]
		of := resource{q.ResourceType, q.ResourceName}
		err := checkOps(q.Configs)
		if err == nil {
			err = h.alter(ctx, of, count[of], req.ValidateOnly, func(old map[string]string) (map[string]string, error) {
				return h.applyOps(of, old, q.Configs)
			})
		}
		r := kmsg.NewIncrementalAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = q.ResourceType, q.ResourceName
		r.ErrorCode, r.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
		resp.Resources = append(resp.Resources, r)
	}
	return resp, nil
}

// checkOps finds what is wrong whatever is set now.
func checkOps(ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) error {
	seen := map[string]bool{}
	for i := range ops {
		o := &ops[i]
		switch {
		case seen[o.Name]:
			return refuse(InvalidRequest, "error due to duplicate config keys: %s", o.Name)
		case o.Op < kmsg.IncrementalAlterConfigOpSet || o.Op > kmsg.IncrementalAlterConfigOpSubtract:
			return refuse(InvalidRequest, "unknown operation %d on %s", o.Op, o.Name)
		case o.Value == nil && o.Op != kmsg.IncrementalAlterConfigOpDelete:
			return refuse(InvalidRequest, "null value not supported for: %s", o.Name)
		}
		seen[o.Name] = true
	}
	return nil
}

// applyOps makes the new overrides of the old ones, which it takes over.
func (h *Handler) applyOps(of resource, values map[string]string, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) (map[string]string, error) {
	for i := range ops {
		o := &ops[i]
		switch o.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			values[o.Name] = *o.Value
			continue
		case kmsg.IncrementalAlterConfigOpDelete:
			delete(values, o.Name)
			continue
		}
		def, ok := of.def(o.Name)
		if ok && def.Type != config.List {
			return nil, refuse(InvalidConfig, "config value append and subtract are not allowed for config key: %s", o.Name)
		}
		if !ok {
			values[o.Name] = *o.Value // for the check to refuse
			continue
		}
		var now []string
		if v, set := values[o.Name]; set {
			now = words(v)
		} else {
			now = words(h.inEffect(of, o.Name))
		}
		for _, w := range words(*o.Value) {
			has := slices.Contains(now, w)
			switch {
			case o.Op == kmsg.IncrementalAlterConfigOpAppend && !has:
				now = append(now, w)
			case o.Op == kmsg.IncrementalAlterConfigOpSubtract && has:
				now = slices.DeleteFunc(now, func(s string) bool { return s == w })
			}
		}
		values[o.Name] = strings.Join(now, ",")
	}
	return values, nil
}

// inEffect is the value of a setting that has no override.
func (h *Handler) inEffect(of resource, name string) string {
	if of.kind == kmsg.ConfigResourceTypeTopic {
		v, _ := h.Config.TopicValue(name, nil)
		return v
	}
	v, _ := h.Config.Value(name)
	return v
}

func words(list string) []string {
	var out []string
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}
