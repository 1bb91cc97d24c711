// Package cputime reads how much CPU time another process has used.
package cputime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Of returns user plus system time of all threads of pid, at the scheduler's resolution.
// The clock id of another process is ~pid<<3 | 2 (clock_getcpuclockid(3), CPUCLOCK_SCHED).
func Of(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
