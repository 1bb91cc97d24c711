//go:build !linux

package spindlebench

import (
	"errors"

	"platter/engine/commitlog"
)

// settle makes all that was appended durable, log by log.
func settle(_ string, logs []*commitlog.Log) error {
	errs := make([]error, len(logs))
	each(4, len(logs), func(i int) { errs[i] = logs[i].Sync() })
	return errors.Join(errs...)
}
