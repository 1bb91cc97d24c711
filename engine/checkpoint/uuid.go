package checkpoint

import (
	"encoding/base64"
	"fmt"
)

// UUID is a topic's or a directory's id.
type UUID [16]byte

// String is Kafka's way of showing it: unpadded URL-safe base64, 22 characters.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// ParseUUID reads what String shows.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != base64.RawURLEncoding.EncodedLen(len(u)) {
		return u, fmt.Errorf("uuid %s has not 22 characters", quote([]byte(s)))
	}
	p, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return u, fmt.Errorf("uuid %s: %w", quote([]byte(s)), err)
	}
	copy(u[:], p)
	return u, nil
}
