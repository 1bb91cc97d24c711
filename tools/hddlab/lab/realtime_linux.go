package lab

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// realtimeVariable marks a process that has been through RealTime.
const realtimeVariable = "HDDLAB_REALTIME"

// RealTime makes this process a real-time one (SCHED_RR, sched(7)), if it may: a disk does not wait for a
// processor, however busy the machine is. All threads must have it, and they inherit it, so the process replaces
// itself while it has one thread. Called first; it comes back in a process that is real-time, or cannot be.
func RealTime() {
	if os.Getenv(realtimeVariable) != "" {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return
	}
	// Exec fails only where the binary cannot be read again: then this one thread is real-time, and does no harm.
	_ = syscall.Exec(exe, os.Args, append(os.Environ(), realtimeVariable+"=1"))
}
