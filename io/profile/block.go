package profile

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Of decides what is under an absolute path, from a tree with proc/self/mountinfo and sys in it.
func Of(root fs.FS, p string) Profile {
	r := &reader{root: root}
	r.mounts = parseMounts(r.text("proc/self/mountinfo", 4<<20))
	return r.profile(p, 0)
}

// depthMax bounds what may stand on one another: volumes on sets on loop devices on volumes.
const depthMax = 16

type reader struct {
	root   fs.FS
	mounts []mount
}

// text is a small file's content without the space around it, "" when it cannot be read.
func (r *reader) text(name string, most int) string {
	f, err := r.root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	p := make([]byte, 0, 4096)
	for len(p) < most {
		if len(p) == cap(p) {
			p = slices.Grow(p, cap(p))
		}
		n, err := f.Read(p[len(p):min(cap(p), most)])
		p = p[:len(p)+n]
		if err != nil || n == 0 {
			break
		}
	}
	return strings.TrimSpace(string(p))
}

func (r *reader) number(name string) int64 {
	n, err := strconv.ParseInt(r.text(name, 64), 10, 64)
	if err != nil || n < 0 || n > 1<<53 {
		return 0
	}
	return n
}

func (r *reader) exists(name string) bool {
	_, err := fs.Stat(r.root, name)
	return err == nil
}

// names lists a directory.
func (r *reader) names(dir string) (names []string) {
	entries, err := fs.ReadDir(r.root, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (r *reader) profile(p string, depth int) Profile {
	out := Profile{Path: p, Reason: "no mount was found for it"}
	m, ok := mountOf(r.mounts, p)
	if !ok || depth > depthMax {
		return out
	}
	out.FileSystem, out.Mount, out.Device = m.fs, m.point, m.source
	switch {
	case slices.Contains(memoryFileSystems, m.fs):
		out.Kind, out.Reason = Memory, m.fs+" is kept in memory"
		return out
	case slices.Contains(networkFileSystems, m.fs):
		out.Kind, out.Reason = Network, m.fs+" is another machine's"
		return out
	case slices.Contains(hostFileSystems, m.fs):
		out.Kind, out.Reason = Virtual, m.fs+" is the host's, who knows on what"
		return out
	case m.fs == "overlay":
		if upper := m.option("upperdir"); path.IsAbs(upper) && upper != p {
			below := r.profile(upper, depth+1)
			below.Path, below.FileSystem, below.Mount = p, "overlay on "+below.FileSystem, m.point
			return below
		}
		out.Reason = "overlay: what it is on cannot be seen from here"
		return out
	}
	r.onBlocks(&out, m, depth)
	return out
}

// onBlocks fills in what the block devices under a mount tell.
func (r *reader) onBlocks(out *Profile, m mount, depth int) {
	tops := r.devices(m)
	if len(tops) == 0 {
		out.Reason = m.fs + " on " + m.source + ": no block device can be seen"
		return
	}
	w := walk{r: r, seen: map[string]bool{}}
	for _, name := range tops {
		w.below(name, depth)
	}
	out.Device = strings.Join(tops, "+")
	out.ReadAheadBytes = r.number("sys/block/"+tops[0]+"/queue/read_ahead_kb") << 10
	slices.SortFunc(w.disks, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	out.Disks, out.RAID = w.disks, w.raid
	out.Kind, out.Reason = w.verdict()
}

// devices is the whole disks, or sets or volumes, that a mount's file system is on.
func (r *reader) devices(m mount) []string {
	if major, _, _ := strings.Cut(m.device, ":"); major != "0" {
		if name := r.diskOf(r.nameOf(m.device)); name != "" {
			return []string{name}
		}
		return nil
	}
	name, ok := strings.CutPrefix(m.source, "/dev/")
	if !ok {
		return nil
	}
	names := []string{r.byName(name)}
	if m.fs == "btrfs" { // each of its file systems lists its devices
		for _, id := range r.names("sys/fs/btrfs") {
			if list := r.names("sys/fs/btrfs/" + id + "/devices"); slices.Contains(list, names[0]) || slices.Contains(list, name) {
				names = list
			}
		}
	}
	var disks []string
	for _, n := range names {
		if d := r.diskOf(n); d != "" && !slices.Contains(disks, d) {
			disks = append(disks, d)
		}
	}
	slices.Sort(disks)
	return disks
}

// nameOf is the kernel's name of a device number, as sysfs spells it.
func (r *reader) nameOf(number string) string {
	if !fs.ValidPath(number) {
		return ""
	}
	for line := range strings.Lines(r.text("sys/dev/block/"+number+"/uevent", 4096)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok {
			return strings.ReplaceAll(name, "/", "!")
		}
	}
	return ""
}

// byName is the kernel's name of what stands in /dev.
func (r *reader) byName(name string) string {
	if mapped, ok := strings.CutPrefix(name, "mapper/"); ok {
		for _, d := range r.names("sys/block") {
			if r.text("sys/block/"+d+"/dm/name", 4096) == mapped {
				return d
			}
		}
	}
	return strings.ReplaceAll(name, "/", "!")
}

// diskOf is the disk that a partition is on, and a disk itself; "" when there is none of that name.
func (r *reader) diskOf(name string) string {
	if name == "" || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return ""
	}
	if r.exists("sys/block/" + name) {
		return name
	}
	for _, d := range r.names("sys/block") {
		if r.exists("sys/block/" + d + "/" + name) {
			return d
		}
	}
	return ""
}

// walk goes from a block device down to the disks.
type walk struct {
	r       *reader
	seen    map[string]bool
	disks   []Disk
	raid    *RAID
	through []string // what was passed on the way
}

func (w *walk) below(name string, depth int) {
	if w.seen[name] || depth > depthMax {
		return
	}
	w.seen[name] = true
	dir := "sys/block/" + name
	if level := w.r.text(dir+"/md/level", 64); level != "" && w.raid == nil {
		w.raid = w.r.raid(name, level)
	}
	slaves := w.r.names(dir + "/slaves")
	for _, s := range slaves {
		if d := w.r.diskOf(s); d != "" {
			w.below(d, depth+1)
		}
	}
	if len(slaves) > 0 {
		w.through = append(w.through, name)
		return
	}
	if file := w.r.text(dir+"/loop/backing_file", 4096); path.IsAbs(file) {
		w.through = append(w.through, name)
		under := w.r.profile(file, depth+1)
		if w.raid == nil {
			w.raid = under.RAID
		}
		if len(under.Disks) == 0 {
			w.disks = append(w.disks, Disk{Name: name, Kind: under.Kind, Reason: "a loop device; its file: " + under.Reason})
		}
		for _, d := range under.Disks {
			if !w.seen[d.Name] {
				w.seen[d.Name] = true
				w.disks = append(w.disks, d)
			}
		}
		return
	}
	w.disks = append(w.disks, w.r.disk(name))
}

func (r *reader) raid(name, level string) *RAID {
	dir := "sys/block/" + name + "/md/"
	n := int(min(r.number(dir+"raid_disks"), 1<<16))
	set := &RAID{Name: name, Level: level, Disks: n, Data: n, Missing: int(min(r.number(dir+"degraded"), int64(n))), ChunkBytes: r.number(dir + "chunk_size")}
	switch level {
	case "raid1":
		set.Data = 1
	case "raid4", "raid5":
		set.Data = max(1, n-1)
	case "raid6":
		set.Data = max(1, n-2)
	case "raid10":
		// md/layout: near copies in the lowest byte, far ones in the next (md(4)).
		layout := r.number(dir + "layout")
		copies := max(1, int(layout&0xff)) * max(1, int(layout>>8&0xff))
		if layout == 0 {
			copies = 2
		}
		set.Data = max(1, n/copies)
	case "linear", "raid0":
	}
	if level == "linear" || level == "raid1" {
		set.ChunkBytes = 0
	}
	return set
}

// care orders kinds by how much they want to be treated gently: a set is as its worst member.
var care = []Kind{HDD, Unknown, Network, Virtual, SSD, NVMe, Memory}

func (w *walk) verdict() (Kind, string) {
	if len(w.disks) == 0 {
		return Unknown, "no disk can be seen below it"
	}
	worst := slices.MinFunc(w.disks, func(a, b Disk) int { return slices.Index(care, a.Kind) - slices.Index(care, b.Kind) })
	reason := worst.Name + ": " + worst.Reason
	if slices.ContainsFunc(w.disks, func(d Disk) bool { return d.Kind != worst.Kind }) {
		reason += ", and the slowest disk counts"
	}
	if len(w.through) > 0 {
		reason += ", below " + strings.Join(w.through, ", ")
	}
	return worst.Kind, reason
}
