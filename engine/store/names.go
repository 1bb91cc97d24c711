package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Kafka's limits and suffixes of directory names (org.apache.kafka.common.internals.Topic, LocalLog).
const (
	topicNameMax  = 249
	dirNameMax    = 255
	deleteSuffix  = "-delete"
	futureSuffix  = "-future"
	straySuffix   = "-stray"
	metadataTopic = "__cluster_metadata" // KRaft's own log
)

// dirKind is what a directory inside a data directory is.
type dirKind int

const (
	dirForeign dirKind = iota // not ours: left alone
	dirLog
	dirDeleted
	dirFuture // Kafka was moving a replica here from another directory
	dirStray  // Kafka found no owner for it
)

// dirName is a log's directory.
func dirName(tp TP) string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// deletedName is what a log's directory is renamed to: never the same twice, and never too long.
func deletedName(tp TP) string {
	var id [16]byte
	rand.Read(id[:])
	suffix := fmt.Sprintf("-%d.%s%s", tp.Partition, hex.EncodeToString(id[:]), deleteSuffix)
	return tp.Topic[:min(len(tp.Topic), dirNameMax-len(suffix))] + suffix
}

// ParseDir gives the partition whose log's directory is called name; ok is false for any other directory.
func ParseDir(name string) (tp TP, ok bool) {
	tp, kind := parseDirName(name)
	return tp, kind == dirLog
}

// parseDirName tells what a directory is by its name. tp is set for dirLog alone.
func parseDirName(name string) (tp TP, kind dirKind) {
	for _, k := range []struct {
		suffix string
		kind   dirKind
	}{{deleteSuffix, dirDeleted}, {futureSuffix, dirFuture}, {straySuffix, dirStray}} {
		if base, ok := strings.CutSuffix(name, k.suffix); ok {
			// <topic>-<partition>.<id>; a topic may end like that as well, but not its directory
			if dot := strings.LastIndexByte(base, '.'); dot > 0 && dot < len(base)-1 {
				if _, ok := parsePartition(base[:dot]); ok {
					return TP{}, k.kind
				}
			}
			return TP{}, dirForeign
		}
	}
	tp, ok := parsePartition(name)
	if !ok || tp.Topic == metadataTopic {
		return TP{}, dirForeign
	}
	return tp, dirLog
}

func parsePartition(name string) (TP, bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 {
		return TP{}, false
	}
	n, err := strconv.ParseInt(name[dash+1:], 10, 32)
	tp := TP{name[:dash], int32(n)}
	// No second spelling of a number: +1 and 01 would be the log of 1 in another directory.
	return tp, err == nil && checkName(tp) == nil && dirName(tp) == name
}

// checkName holds a partition's name to Kafka's rules, which also keep it inside its data directory.
func checkName(tp TP) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: topic %q, partition %d: %s", ErrName, tp.Topic, tp.Partition, why)
	}
	switch {
	case tp.Topic == "" || tp.Topic == "." || tp.Topic == "..":
		return bad("such a topic cannot be")
	case len(tp.Topic) > topicNameMax:
		return bad(fmt.Sprintf("a topic's name has at most %d characters", topicNameMax))
	case tp.Partition < 0:
		return bad("partitions count from 0")
	}
	for _, c := range []byte(tp.Topic) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return bad("a topic's name is made of letters, digits, '.', '_' and '-'")
		}
	}
	return nil
}
