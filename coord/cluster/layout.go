package cluster

import (
	"context"
	"errors"
	"fmt"

	"platter/coord/zkclient"
)

// Maker is what EnsureLayout uses of *zkclient.Client.
type Maker interface {
	Getter
	Multi(ctx context.Context, ops ...zkclient.Op) ([]zkclient.Result, error)
}

// EnsureLayout makes the persistent znodes that brokers expect, with a random cluster id and an empty
// /feature, as far as they are missing: one pipelined look, and at most one multi. It gives the cluster's id.
func EnsureLayout(ctx context.Context, zk Maker) (clusterID string, err error) {
	for range 10 { // several brokers may start at once
		clusterID, err = ensureLayout(ctx, zk)
		if !errors.Is(err, zkclient.ErrNodeExists) {
			break
		}
	}
	return clusterID, err
}

func ensureLayout(ctx context.Context, zk Maker) (string, error) {
	wanted := layout()
	paths := make([]string, len(wanted))
	for i, w := range wanted {
		paths[i] = w.path
	}
	nodes, err := zk.GetMany(ctx, paths)
	if err != nil {
		return "", err
	}
	var missing []zkclient.Op
	var id string
	for i, n := range nodes {
		switch {
		case errors.Is(n.Err, zkclient.ErrNoNode):
			missing = append(missing, zkclient.CreateOp(wanted[i].path, wanted[i].data, zkclient.Persistent))
		case n.Err != nil:
			return "", n.Err
		case n.Path == ClusterIDPath:
			if id, err = DecodeClusterID(n.Data); err != nil {
				return "", err
			}
		}
	}
	if len(missing) == 0 {
		return id, nil
	}
	if _, err := zk.Multi(ctx, missing...); err != nil {
		return "", fmt.Errorf("make the cluster's znodes: %w", err)
	}
	if id == "" {
		id, err = DecodeClusterID(wanted[len(wanted)-1].data)
	}
	return id, err
}

type znode struct {
	path string
	data []byte
}

// layout is every node with its parents before it; the cluster id comes last.
func layout() []znode {
	var out []znode
	seen := map[string]bool{}
	add := func(path string, data []byte) {
		for i := 1; i < len(path); i++ {
			if path[i] == '/' && !seen[path[:i]] {
				seen[path[:i]] = true
				out = append(out, znode{path: path[:i]})
			}
		}
		if !seen[path] {
			seen[path] = true
			out = append(out, znode{path, data})
		}
	}
	for _, p := range PersistentPaths {
		add(p, nil)
	}
	add(FeaturePath, EncodeFeature())
	add(ClusterIDPath, EncodeClusterID(NewUUID().String()))
	return out
}
