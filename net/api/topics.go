package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/coord/controller"
)

func isAlive(img *cluster.Image, id int32) bool {
	_, ok := img.Broker(id)
	return ok
}

func rackOf(b *cluster.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}

// offlineReplicas are those on brokers that are not there, and those that their brokers report.
func offlineReplicas(img *cluster.Image, p *cluster.Partition) []int32 {
	var off []int32
	for _, r := range p.Replicas {
		if !isAlive(img, r) || slices.Contains(p.OfflineReplicas, r) {
			off = append(off, r)
		}
	}
	return off
}

func isInternal(topic string) bool { return config.IsInternal(topic) }

func validTopicName(s string) bool { return controller.CheckTopicName(s) == nil }

// Creating a missing topic waits for its leaders, so that the first send finds one.
const (
	createWaitMax   = 5 * time.Second
	createTopicsMax = 1000 // topics that one metadata request may create
	imagePoll       = 2 * time.Millisecond
)

// createMissing creates the named topics that are missing, when that is allowed, and waits until the
// image shows their leaders. It returns the newest image, and by name why a topic was not created.
func (h *Handler) createMissing(c call, img *cluster.Image, req *kmsg.MetadataRequest) (*cluster.Image, map[string]error) {
	failed := map[string]error{}
	if req.Version >= 4 && !req.AllowAutoTopicCreation || !h.Config.Bool("auto.create.topics.enable") {
		return img, failed
	}
	var wanted []controller.NewTopic
	var names []string
	for i := range req.Topics {
		name := req.Topics[i].Topic
		if name == nil || req.Topics[i].TopicID != [16]byte{} || img.Topics[*name] != nil ||
			!validTopicName(*name) || isInternal(*name) || slices.Contains(names, *name) {
			continue
		}
		if len(wanted) == createTopicsMax {
			failed[*name] = refuse(LeaderNotAvailable, "too many topics to create at once")
			continue
		}
		wanted = append(wanted, controller.NewTopic{Name: *name, PartitionCount: -1, ReplicationFactor: -1})
		names = append(names, *name)
	}
	if len(wanted) == 0 {
		return img, failed
	}
	ctx, cancel := context.WithTimeout(c.ctx, createWaitMax)
	defer cancel()
	for _, r := range h.CreateMissing(ctx, wanted) {
		switch {
		case r.Err == nil, errors.Is(r.Err, controller.ErrTopicExists):
		case codeOf(r.Err) == RequestTimedOut, errors.Is(r.Err, controller.ErrNotController):
			failed[r.Name] = refuse(LeaderNotAvailable, "topic is being created")
		default:
			failed[r.Name] = r.Err
			h.Log.Warn("topic was not created", "topic", r.Name, "err", r.Err)
		}
	}
	for _, name := range names {
		if failed[name] == nil && !h.awaitLeaders(ctx, name) && h.Image().Topics[name] == nil {
			failed[name] = refuse(LeaderNotAvailable, "topic is being created")
		}
	}
	return h.Image(), failed
}

// awaitLeaders waits until the image shows a leader for each of the topic's partitions, or ctx ends.
func (h *Handler) awaitLeaders(ctx context.Context, name string) bool {
	for {
		if t := h.Image().Topics[name]; t != nil && allLed(t) {
			return true
		}
		select {
		case <-h.Clock.After(imagePoll):
		case <-ctx.Done():
			return false
		}
	}
}

func allLed(t *cluster.Topic) bool {
	for i := range t.Partitions {
		if t.Partitions[i].Leader < 0 {
			return false
		}
	}
	return true
}
