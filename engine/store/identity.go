package store

import (
	"fmt"

	"platter/engine/checkpoint"
)

// checkIdentity compares the directories' meta.properties with the configuration and with each other, and
// takes broker and cluster id from them.
func (s *Store) checkIdentity() error {
	broker, cluster := s.c.BrokerID, s.c.ClusterID
	brokerFrom, clusterFrom := "broker.id", "the cluster"
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		path, m := d.join(checkpoint.MetaFile), d.meta
		if m.BrokerID >= 0 {
			if broker >= 0 && broker != m.BrokerID {
				return fmt.Errorf("%w: %s says broker %d, %s says %d: correct broker.id or log.dirs, or move the directory away",
					ErrIdentity, path, m.BrokerID, brokerFrom, broker)
			}
			broker, brokerFrom, s.brokerID = m.BrokerID, path, m.BrokerID
		}
		if m.ClusterID != "" {
			if cluster != "" && cluster != m.ClusterID {
				return fmt.Errorf("%w: %s says cluster %q, %s says %q: correct zookeeper.connect or log.dirs, or move the directory away",
					ErrIdentity, path, m.ClusterID, clusterFrom, cluster)
			}
			cluster, clusterFrom, s.clusterID = m.ClusterID, path, m.ClusterID
		}
	}
	return nil
}

// SetIdentity writes broker and cluster id to every directory's meta.properties. ErrIdentity when a
// directory has other ones already; a directory that cannot be written goes offline.
func (s *Store) SetIdentity(brokerID int32, clusterID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.brokerID >= 0 && s.brokerID != brokerID || s.clusterID != "" && s.clusterID != clusterID {
		return fmt.Errorf("%w: log.dirs hold broker %d of cluster %q, this is broker %d of cluster %q",
			ErrIdentity, s.brokerID, s.clusterID, brokerID, clusterID)
	}
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		if err := d.identify(brokerID, clusterID); err != nil {
			if !deviceFailed(err) {
				return err
			}
			s.failDir(d, err)
		}
	}
	s.brokerID, s.clusterID = brokerID, clusterID
	return nil
}
