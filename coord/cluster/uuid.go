package cluster

import (
	"crypto/rand"

	"platter/engine/store"
)

// NewUUID makes a random (version 4) id; never one whose text begins with a dash, which command lines
// would take for an option (Uuid.randomUuid). Kafka's own reserved ids are not of version 4.
func NewUUID() store.UUID {
	for {
		var id store.UUID
		rand.Read(id[:]) // never fails: it ends the process instead
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id.String()[0] != '-' {
			return id
		}
	}
}
