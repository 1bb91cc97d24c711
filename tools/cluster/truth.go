package cluster

import (
	"context"
	"fmt"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// States is what the coordinator holds of a topic's partitions: the truth, where a broker that the controller does not
// reach goes on telling what was so before.
func (c *Cluster) States(ctx context.Context, topic string, partitions int) ([]cluster.State, error) {
	servers, chroot, err := zkclient.ParseConnect(c.Brokers[0].Props["zookeeper.connect"])
	if err != nil {
		return nil, err
	}
	zk, err := zkclient.Connect(ctx, zkclient.Config{Servers: servers, Chroot: chroot})
	if err != nil {
		return nil, err
	}
	defer zk.Close()
	out := make([]cluster.State, partitions)
	for p := range out {
		data, _, err := zk.Get(ctx, cluster.StatePath(topic, int32(p)), nil)
		if err != nil {
			return nil, err
		}
		if out[p], err = cluster.DecodeState(data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// awaitStates waits until the coordinator holds so many in-sync replicas, and a leader, of each partition.
func (c *Cluster) awaitStates(topic string, replicas []int) {
	c.t.Helper()
	var last []cluster.State
	var err error
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		last, err = c.States(ctx, topic, len(replicas))
		cancel()
		whole := err == nil
		for i, s := range last {
			whole = whole && s.Leader >= 0 && len(s.ISR) == replicas[i]
		}
		if whole {
			return
		}
	}
	c.t.Fatalf("not in 90 s: by the coordinator every replica of %s is in sync; last %s, %v", topic, fmt.Sprintf("%+v", last), err)
}
