package controller

import (
	"fmt"
	"strings"
)

// TopicNameMax is the longest topic name, in bytes.
const TopicNameMax = 249

// CheckTopicName says whether a topic may be called so, as Kafka does (Topic.validate).
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the empty string is not allowed", ErrInvalidTopic)
	case name == "." || name == "..":
		return fmt.Errorf("%w: '.' or '..' is not allowed", ErrInvalidTopic)
	case len(name) > TopicNameMax:
		return fmt.Errorf("%w: the length of '%.40s...' is longer than the max allowed length %d", ErrInvalidTopic, name, TopicNameMax)
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return fmt.Errorf("%w: %q contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", ErrInvalidTopic, name)
	}
	return nil
}

// collisionKey is equal for names that would collide in metric names, where '.' turns into '_'.
func collisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }
