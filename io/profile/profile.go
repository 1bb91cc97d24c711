// Package profile tells what is under a path (a spinning disk, an SSD, a RAID set of either, a virtual disk of which nothing
// is known, memory, a network) and which settings suit it.
//
// Of is a pure function of what the kernel shows under /proc and /sys: given a tree of files it decides, so every
// kind of machine is a fixture. Read is the same of this machine; where the kernel shows nothing (not Linux, a container
// without /sys) the profile is Unknown, and gets the defaults of a spinning disk, which no SSD suffers from.
//
// A path's file system is found in /proc/self/mountinfo (proc_pid_mountinfo(5)), its block device under /sys/dev/block, and
// below that the disks: partitions stand in their disk's directory, dm and md have slaves, a loop device has a backing file, which
// is on a file system again. What the disks are is told by queue/rotational (Documentation/ABI/stable/sysfs-block), but for
// virtual ones, whose flag says nothing about what the host has.
//
// Everything that is read is bounded, and nothing that is read is trusted: a profile is a hint.
package profile

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what the data lies on in the end.
type Kind int

// From what is known least to what needs care least.
const (
	Unknown Kind = iota // nothing can be said
	HDD                 // rotating
	Network             // another machine's
	Virtual             // a disk of a virtual machine: the host has what it has
	SSD                 // flash behind SATA, SAS or a card reader
	NVMe                // flash on PCIe
	Memory              // gone with the machine
)

var kindNames = [...]string{"unknown", "hdd", "network", "virtual", "ssd", "nvme", "memory"}

func (k Kind) String() string { return kindNames[k] }

// Disk is one device that has none below it, as far as the kernel shows.
type Disk struct {
	Name   string // the kernel's: "sda"
	Model  string // vendor and model, "" when it does not say
	Kind   Kind
	Reason string // why it is taken for that

	Rotational     bool  // as the kernel says; of a virtual disk not to be believed
	QueueDepth     int   // commands that it takes at once; 0: not told
	Requests       int   // nr_requests: what its queue holds
	ReadAheadBytes int64 // the kernel's readahead window
	RequestBytes   int64 // the longest request (max_sectors_kb)
	OptimalBytes   int64 // optimal_io_size; 0: not told
	WriteCache     bool  // a write may be done before it is on the medium ("write back")
	Scheduler      string
	SizeBytes      int64
}

// RAID is an md set.
type RAID struct {
	Name       string // "md0"
	Level      string // as md calls it: "raid5", "linear"
	Disks      int    // members that it should have
	Data       int    // of these, how many hold data that is no copy or parity
	Missing    int    // members that are gone
	ChunkBytes int64  // 0 where there are no stripes
}

// StripeBytes is the data of one full stripe: what is written without reading first. 0 where there are none.
func (r *RAID) StripeBytes() int64 {
	if r == nil {
		return 0
	}
	return r.ChunkBytes * int64(r.Data)
}

// Copies is how many disks can serve a read of the same data.
func (r *RAID) Copies() int {
	if r == nil || r.Data == 0 || r.Level != "raid1" && r.Level != "raid10" {
		return 1
	}
	return max(1, r.Disks/r.Data)
}

// Profile is what is under a path.
type Profile struct {
	Path           string
	FileSystem     string // "ext4"; "" when no mount was found
	Mount          string // where it is mounted
	Device         string // the topmost block device, "md0"; else what was mounted, "server:/export"
	Kind           Kind
	Reason         string
	RAID           *RAID  // the topmost md set, nil when there is none
	Disks          []Disk // by name
	ReadAheadBytes int64  // of the topmost block device
}

// ID names the device under the path: directories with one ID share their disks. It is made of the disks, not of the partitions or
// volumes on them.
func (p Profile) ID() string {
	switch {
	case len(p.Disks) > 0:
	case p.Device == "":
		return p.Path
	default:
		return p.FileSystem + " " + p.Device
	}
	names := make([]string, len(p.Disks))
	for i, d := range p.Disks {
		names[i] = d.Name
	}
	return strings.Join(names, "+")
}

// Shares reports whether two paths have a disk in common.
func (p Profile) Shares(o Profile) bool {
	if len(p.Disks) == 0 || len(o.Disks) == 0 {
		return p.ID() == o.ID()
	}
	return slices.ContainsFunc(p.Disks, func(d Disk) bool {
		return slices.ContainsFunc(o.Disks, func(e Disk) bool { return d.Name == e.Name })
	})
}

// WriteCache reports whether any disk's is on.
func (p Profile) WriteCache() bool {
	return slices.ContainsFunc(p.Disks, func(d Disk) bool { return d.WriteCache })
}

// What says it in a few words: "RAID-5 of 6 hdd (md0: sda sdb sdc sdd sde sdf), ext4".
func (p Profile) What() string {
	var b strings.Builder
	names := make([]string, len(p.Disks))
	for i, d := range p.Disks {
		names[i] = d.Name
	}
	switch list := strings.Join(names, " "); {
	case p.RAID != nil:
		fmt.Fprintf(&b, "%s of %d %s (%s: %s)", p.RAID.title(), p.RAID.Disks, p.Kind, p.RAID.Name, list)
		if p.RAID.Missing > 0 {
			fmt.Fprintf(&b, ", %d missing", p.RAID.Missing)
		}
	case slices.ContainsFunc(p.Disks, func(d Disk) bool { return d.Kind != p.Kind }):
		fmt.Fprintf(&b, "%d disks, %s the slowest (%s)", len(p.Disks), p.Kind, list)
	case len(p.Disks) > 1:
		fmt.Fprintf(&b, "%d %s (%s)", len(p.Disks), p.Kind, list)
	case len(p.Disks) == 1:
		fmt.Fprintf(&b, "%s (%s)", p.Kind, list)
	default:
		b.WriteString(p.Kind.String())
	}
	if p.FileSystem != "" {
		b.WriteString(", " + p.FileSystem)
	}
	return b.String()
}

func (r *RAID) title() string {
	if level, ok := strings.CutPrefix(r.Level, "raid"); ok {
		return "RAID-" + level
	}
	return r.Level
}

// String is What and the reason.
func (p Profile) String() string { return p.What() + ": " + p.Reason }

// Row is one line of a table: a name and a value.
type Row struct{ Name, Value string }

// Rows is everything that is known, for people.
func (p Profile) Rows() []Row {
	rows := []Row{{"path", p.Path}, {"file system", p.FileSystem + " on " + p.Device}, {"device", p.What()}, {"reason", p.Reason}}
	if p.RAID.StripeBytes() > 0 {
		rows = append(rows, Row{"stripe", fmt.Sprintf("%s (chunk %s on %d data disks)", Size(p.RAID.StripeBytes()), Size(p.RAID.ChunkBytes), p.RAID.Data)})
	}
	if p.ReadAheadBytes > 0 {
		rows = append(rows, Row{"readahead", Size(p.ReadAheadBytes)})
	}
	for _, d := range p.Disks {
		rows = append(rows, Row{d.Name, d.line()})
	}
	return rows
}

func (d Disk) line() string {
	parts := []string{d.Kind.String()}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if d.Model != "" {
		add("%s", d.Model)
	}
	if d.SizeBytes > 0 {
		add("%s", Size(d.SizeBytes))
	}
	if d.QueueDepth > 0 {
		add("depth %d", d.QueueDepth)
	}
	if d.Requests > 0 {
		add("queue %d", d.Requests)
	}
	if d.RequestBytes > 0 {
		add("requests to %s", Size(d.RequestBytes))
	}
	if d.OptimalBytes > 0 {
		add("best at %s", Size(d.OptimalBytes))
	}
	if d.Scheduler != "" {
		add("scheduler %s", d.Scheduler)
	}
	cache := "write cache off"
	if d.WriteCache {
		cache = "write cache on"
	}
	return strings.Join(append(parts, cache), ", ")
}

// Size writes a number of bytes as people do: "64 MiB", "1.8 TiB"; 0 is "0".
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if n == 0 {
		return "0"
	}
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d %s", int64(v), units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}
