package broker

import (
	"context"

	"platter/coord/group"
)

// startGroups starts the group coordinator. It stops after the server, so that members that wait are
// answered, and before the node leaves the cluster, so that what was committed is stored.
func (b *Broker) startGroups() *group.Coordinator {
	groups := group.New(group.FromSettings(b.o.Config, group.Config{
		BrokerID:   b.node.BrokerID(),
		Replicas:   b.node.Host(),
		Image:      b.node.Image,
		Controller: b.node,
		Clock:      b.clock,
		Log:        b.o.Log.With("part", "groups"),
	}))
	b.node.Watch(groups)
	groups.RolesChanged(nil)
	b.metrics.WatchGroups(groups.Stats)
	b.atStop("the group coordinator", func(context.Context) error {
		groups.Close()
		return nil
	})
	return groups
}
