package disklab

import (
	"fmt"
	"slices"
	"strings"

	"platter/io/hddsim"
	"platter/io/profile"
)

// Model is a modelled device: a drive, or a set of equal ones. Zero fields get their defaults from Check.
type Model struct {
	Kind        string `json:"kind"`  // one of Models
	Drive       string `json:"drive"` // of a set's members: hdd7200, hdd5400 or hdd15000
	Disks       int    `json:"disks"` // of a set
	ChunkBytes  int64  `json:"chunk_bytes"`
	StripeCache int    `json:"stripe_cache"` // md's, of levels 5 and 6: stripes of 4,096 bytes a member
}

var (
	drives = map[string]func() hddsim.DriveParams{"hdd7200": hddsim.HDD7200, "hdd5400": hddsim.HDD5400, "hdd15000": hddsim.HDD15000}
	solids = map[string]func() hddsim.SSDParams{"ssd": hddsim.SATASSD, "nvme": hddsim.NVMe}
	levels = map[string]int{"raid0": 0, "raid1": 1, "raid5": 5, "raid6": 6, "raid10": 10}
)

// Models are the names that Model.Kind takes.
var Models = []string{"hdd7200", "hdd5400", "hdd15000", "raid0", "raid1", "raid5", "raid6", "raid10", "ssd", "nvme"}

// disksMax bounds a set: its members are simulated one by one.
const disksMax = 64

// Check fills in what is not set, and tells what does not go together.
func (m *Model) Check() error {
	if m.Kind == "hdd" {
		m.Kind = "hdd7200"
	}
	if !slices.Contains(Models, m.Kind) {
		return fmt.Errorf("no modelled disk %q: there are %s", m.Kind, strings.Join(Models, ", "))
	}
	level, set := levels[m.Kind]
	if !set {
		if m.Disks > 1 || m.ChunkBytes != 0 || m.StripeCache != 0 || m.Drive != "" {
			return fmt.Errorf("%s is one disk: number, chunk, stripe cache and kind of members are those of a RAID set", m.Kind)
		}
		m.Disks = 1
		return nil
	}
	if m.Drive == "" {
		m.Drive = "hdd7200"
	}
	if drives[m.Drive] == nil {
		return fmt.Errorf("a set's members are hdd7200, hdd5400 or hdd15000, not %q", m.Drive)
	}
	if m.Disks == 0 {
		m.Disks = map[string]int{"raid0": 4, "raid1": 2, "raid5": 6, "raid6": 6, "raid10": 4}[m.Kind]
	}
	d := hddsim.DefaultRAID(level)
	if m.ChunkBytes == 0 {
		m.ChunkBytes = d.ChunkBytes
	}
	if m.StripeCache == 0 {
		m.StripeCache = d.StripeCache
	}
	if m.Disks < 0 || m.Disks > disksMax || m.ChunkBytes > 64<<20 || m.StripeCache < 16 || m.StripeCache > 1<<15 {
		return fmt.Errorf("a set has up to %d disks, chunks of up to 64 MiB, and a stripe cache of 16 to 32768", disksMax)
	}
	_, err := m.device(&hddsim.Machine{}, 0)
	return err
}

// device makes it, with the kernel's queue before each drive.
func (m *Model) device(mach *hddsim.Machine, seed uint64) (hddsim.Device, error) {
	if p := drives[m.Kind]; p != nil {
		return hddsim.NewQueue(mach, hddsim.NewDrive(mach, p(), seed), hddsim.DefaultQueue()), nil
	}
	if p := solids[m.Kind]; p != nil {
		return hddsim.NewQueue(mach, hddsim.NewSSD(mach, p()), hddsim.DefaultQueue()), nil
	}
	p := hddsim.DefaultRAID(levels[m.Kind])
	p.ChunkBytes, p.StripeCache = m.ChunkBytes, m.StripeCache
	return hddsim.NewArray(mach, p, drives[m.Drive](), m.Disks, seed)
}

// String is its name with its parameters, and the word.
func (m *Model) String() string {
	level, set := levels[m.Kind]
	if !set {
		return m.Kind + " (modelled)"
	}
	s := fmt.Sprintf("RAID-%d of %d %s", level, m.Disks, m.Drive)
	if level != 1 {
		s += ", chunk " + profile.Size(m.ChunkBytes)
	}
	if level == 5 || level == 6 {
		s += fmt.Sprintf(", stripe cache %d", m.StripeCache)
	}
	return s + " (modelled)"
}

// profile is what the kernel would show of it.
func (m *Model) profile() *profile.Profile {
	p := &profile.Profile{Path: m.String(), FileSystem: "modelled file system", Kind: profile.HDD, Reason: "modelled"}
	switch m.Kind {
	case "ssd":
		p.Kind = profile.SSD
	case "nvme":
		p.Kind = profile.NVMe
	}
	name, n := m.Kind, m.Disks
	if level, set := levels[m.Kind]; set {
		name = m.Drive
		data := map[int]int{0: n, 1: 1, 5: n - 1, 6: n - 2, 10: n / 2}[level]
		p.RAID = &profile.RAID{Name: "modelled", Level: m.Kind, Disks: n, Data: data, ChunkBytes: m.ChunkBytes}
		if level == 1 {
			p.RAID.ChunkBytes = 0
		}
	}
	for range n {
		p.Disks = append(p.Disks, profile.Disk{Name: name, Kind: p.Kind, Reason: "modelled", Rotational: p.Kind == profile.HDD})
	}
	return p
}
