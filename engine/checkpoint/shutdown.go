package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Names of the marks in a data directory.
const (
	// CleanShutdownFile is there between a clean close and the next start.
	CleanShutdownFile = ".kafka_cleanshutdown"
	// BootFile is ours: the boot id of the kernel under which the directory was last open.
	BootFile = ".platter_boot"
	// LockFile is locked by the process that has the directory open.
	LockFile = ".lock"
)

// bootBytesMax bounds a boot id; Linux's is a UUID of 36 characters.
const bootBytesMax = 128

// cleanMark is the JSON in .kafka_cleanshutdown as Kafka 3.9 writes it (KIP-966). Newer ones have other
// names and strings for the same.
type cleanMark struct {
	Version     int    `json:"version"`
	BrokerEpoch *int64 `json:"brokerEpoch"`
}

type newerMark struct {
	BrokerEpoch string `json:"broker_epoch"`
}

// ParseCleanShutdown gives the broker epoch in the mark; -1 when it has none, as with older Kafkas. That the
// file is there says more than what is in it: on ErrCorrupt the shutdown was clean all the same.
func ParseCleanShutdown(p []byte) (brokerEpoch int64, err error) {
	if len(bytes.TrimSpace(p)) == 0 {
		return -1, nil
	}
	m := newerMark{BrokerEpoch: "-1"}
	if json.Unmarshal(p, &m) == nil && m.BrokerEpoch != "-1" {
		epoch, err := strconv.ParseInt(m.BrokerEpoch, 10, 64)
		if err != nil {
			return -1, fmt.Errorf("%w: broker_epoch %q", ErrCorrupt, m.BrokerEpoch)
		}
		return epoch, nil
	}
	var old cleanMark
	if err := json.Unmarshal(p, &old); err != nil {
		return -1, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if old.BrokerEpoch == nil {
		return -1, nil
	}
	return *old.BrokerEpoch, nil
}

// FormatCleanShutdown returns the mark's bytes, as Kafka 3.9 writes them.
func FormatCleanShutdown(brokerEpoch int64) []byte {
	return fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, brokerEpoch)
}

// ParseBoot gives the boot id in a boot file; "" (no boot is known to equal it) for anything odd.
func ParseBoot(p []byte) string {
	id := bytes.TrimSpace(p)
	if len(id) > bootBytesMax {
		return ""
	}
	return string(id)
}

// FormatBoot returns a boot file's bytes.
func FormatBoot(id string) []byte { return append([]byte(id), '\n') }
