package spindle

import (
	"fmt"
	"strconv"
	"strings"

	"platter/io/disk"
)

// DirtyBudget is what the kernel lets be dirty before it slows writers down (proc(5), Documentation/admin-guide/sysctl/vm.rst).
type DirtyBudget struct {
	LimitBytes      int64 // writers wait at it
	BackgroundBytes int64 // writeback begins at it
}

// DirtyVerdict is what the budget means for the files that grow.
type DirtyVerdict struct {
	// RunBytes is how much of one file the kernel can write at a time: with n files growing, each has about an n-th of the
	// budget in memory. (Measured: 128 MiB for 256 files let a disk of 160 MB/s do 29 to 35.)
	RunBytes int64
	Short    bool // it is less than the device needs
	// NeedBytes is the background limit that would do, and Advice what to set, in words. Both only where Short.
	NeedBytes int64
	Advice    string
}

// judgeMin is how many files have to grow for the budget to be judged: few are in order by themselves.
const judgeMin = 4

// JudgeDirty compares the budget with what active files need for runs of needBytes each. memoryBytes is the machine's, 0 when
// unknown: no advice goes beyond a third of it.
func JudgeDirty(b DirtyBudget, active int, needBytes, memoryBytes int64) DirtyVerdict {
	if active <= 0 || b.BackgroundBytes <= 0 {
		return DirtyVerdict{}
	}
	v := DirtyVerdict{RunBytes: b.BackgroundBytes / int64(active)}
	if active < judgeMin || needBytes <= 0 || v.RunBytes >= needBytes {
		return v
	}
	v.Short, v.NeedBytes = true, needBytes*int64(active)
	if most := memoryBytes / 3; memoryBytes > 0 && v.NeedBytes > most {
		v.NeedBytes = most
		if most <= b.BackgroundBytes {
			v.Advice = fmt.Sprintf("the memory of this machine allows no more; fewer partitions a disk, or more memory, would (%s for %d files)",
				inMiB(needBytes*int64(active)), active)
			return v
		}
	}
	v.Advice = fmt.Sprintf("sysctl -w vm.dirty_background_bytes=%d vm.dirty_bytes=%d", v.NeedBytes, 2*v.NeedBytes)
	return v
}

func inMiB(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// ReadDirtyBudget asks the kernel. Where vm.dirty_bytes is not set the ratios are of the memory that is available, as the
// kernel counts it. An error: not on this system.
func ReadDirtyBudget(fs disk.FS) (DirtyBudget, error) {
	var b DirtyBudget
	info, err := readProc(fs, "/proc/meminfo")
	if err != nil {
		return b, err
	}
	available := memInfo(info, "MemAvailable")
	if b.LimitBytes, err = dirtyLimit(fs, "dirty_bytes", "dirty_ratio", available); err != nil {
		return b, err
	}
	b.BackgroundBytes, err = dirtyLimit(fs, "dirty_background_bytes", "dirty_background_ratio", available)
	if b.BackgroundBytes >= b.LimitBytes { // mm/page-writeback.c, domain_dirty_limits
		b.BackgroundBytes = b.LimitBytes / 2
	}
	return b, err
}

func dirtyLimit(fs disk.FS, inBytes, inPercent string, available int64) (int64, error) {
	n, err := procNumber(fs, "/proc/sys/vm/"+inBytes)
	if err != nil || n > 0 {
		return n, err
	}
	percent, err := procNumber(fs, "/proc/sys/vm/"+inPercent)
	return available / 100 * min(percent, 100), err
}

func procNumber(fs disk.FS, path string) (int64, error) {
	p, err := readProc(fs, path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(p)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: not a number: %.40q", path, p)
	}
	return n, nil
}
