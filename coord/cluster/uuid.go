package cluster

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"platter/engine/store"
)

// FormatUUID is Kafka's text form: unpadded URL-safe base64, 22 characters.
func FormatUUID(id store.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseUUID reads it back.
func ParseUUID(s string) (store.UUID, error) {
	var id store.UUID
	p, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(p) != len(id) {
		return id, fmt.Errorf("%w: %.40q is no id", ErrZnode, s)
	}
	copy(id[:], p)
	return id, nil
}

// NewUUID makes a random (version 4) id; never one that Kafka keeps for itself, nor one whose text
// begins with a dash, which command lines would take for an option (Uuid.randomUuid).
func NewUUID() store.UUID {
	for {
		var id store.UUID
		rand.Read(id[:]) // never fails: it ends the process instead
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if FormatUUID(id)[0] != '-' {
			return id
		}
	}
}
