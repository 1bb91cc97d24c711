package broker

import (
	"math"

	"platter/coord/config"
	ioconn "platter/io/conn"
	"platter/io/disk"
)

// budget is how a process's file descriptors are shared out.
type budget struct {
	files       int // kept open by the store
	connections int // taken by the server
	coordinator int // taken by the coordinator inside; 0: there is none
}

const (
	descriptorsSpare = 64      // for the coordinator's files, locks, the runtime
	filesMaxDefault  = 1 << 17 // more open files bring nothing
	filesMin         = 32      // the store cannot work with less
	// A coordinator inside takes an eighth for its connections: brokers are few, and so are tools.
	coordinatorPart = 8
	coordinatorMax  = 10_000
)

// descriptorBudget gives files and connections half each of what the process may have, and the coordinator inside does
// not need, unless io.open.files.max and max.connections say less. Whoever comes when all are taken waits for one, as
// Kafka's max.connections has it; a process that runs out of descriptors could not even open a segment.
func descriptorBudget(c *config.Broker) budget {
	limit := ioconn.DescriptorLimit()
	if m := sendOptions(c).Method; m == disk.SendSplice || m == disk.SendAuto {
		limit -= 2 * disk.SendPipesMax
	}
	servers, _ := c.ZooKeeper()
	return shareOut(limit, c.Int("io.open.files.max"), c.Int("max.connections"), len(servers) == 0)
}

func shareOut(limit, filesAsked, connectionsMax int, coordinated bool) budget {
	limit = max(limit-descriptorsSpare, 2*filesMin)
	coordinator := 0
	if coordinated {
		coordinator = min(limit/coordinatorPart, coordinatorMax)
		limit = max(limit-coordinator, 2*filesMin)
	}
	files := limit / 2
	if filesAsked > 0 {
		files = filesAsked
	}
	files = max(min(files, filesMaxDefault, limit-filesMin), filesMin)
	return budget{files: files, connections: max(1, min(connectionsMax, limit-files, math.MaxInt32)), coordinator: coordinator}
}
