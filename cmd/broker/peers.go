package broker

import (
	"time"

	"platter/coord/config"
	"platter/coord/controller"
	"platter/coord/node"
	"platter/net/peer"
	"platter/replication/follow"
)

// joinMax bounds how long a start waits for the controller's word.
const joinMax = 10 * time.Second

// peers are the ways to the other brokers, put together from net/peer's.
type peers struct {
	peer.Pushes
	peer.Leaders
	*peer.Pool
}

// peers makes them once the node knows who it is.
func (b *Broker) peers(self node.Self) node.Peers {
	b.pool = peer.New(peer.Config{
		BrokerID: self.BrokerID,
		Epoch:    self.Epoch,
		Listener: b.o.Config.InterBroker(),
		Image:    self.Image,

		SetupTimeout:       millis(b.o.Config.Int64("socket.connection.setup.timeout.ms")),
		ReceiveBufferBytes: b.o.Config.Int("replica.socket.receive.buffer.bytes"),
		PushTimeout:        millis(b.o.Config.Int64("controller.socket.timeout.ms")),
	})
	return peers{peer.Pushes{Pool: b.pool, Self: self.Local}, peer.NewLeaders(b.pool), b.pool}
}

// followConfig is what the settings say of followers.
func followConfig(c *config.Broker) follow.Config {
	return follow.Config{
		Fetchers:          c.Int("num.replica.fetchers"),
		Backoff:           millis(c.Int64("replica.fetch.backoff.ms")),
		Timeout:           millis(c.Int64("replica.socket.timeout.ms")),
		MaxWaitMs:         int32(c.Int("replica.fetch.wait.max.ms")),
		MinBytes:          int32(c.Int("replica.fetch.min.bytes")),
		PartitionBytesMax: int32(c.Int("replica.fetch.max.bytes")),
		ResponseBytesMax:  int32(c.Int("replica.fetch.response.max.bytes")),
	}
}

// balance is what the settings say of leaders that are not the preferred ones.
func balance(c *config.Broker) controller.Balance {
	b := controller.Balance{Percent: c.Int("leader.imbalance.per.broker.percentage")}
	if c.Bool("auto.leader.rebalance.enable") {
		b.Every = time.Duration(c.Int64("leader.imbalance.check.interval.seconds")) * time.Second
	}
	return b
}
