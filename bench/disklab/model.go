package disklab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"platter/io/hddsim"
	"platter/io/profile"
)

// Model is a modelled device: a drive, or a set of equal ones. Zero fields get their defaults from Check; those of a drive are
// the kind's own.
type Model struct {
	Kind        string `json:"kind"`  // one of Models
	Drive       string `json:"drive"` // of a set's members: hdd7200, hdd5400 or hdd15000
	Disks       int    `json:"disks"` // of a set
	ChunkBytes  int64  `json:"chunk_bytes"`
	StripeCache int    `json:"stripe_cache"` // md's, of levels 5 and 6: stripes of 4,096 bytes a member

	// Of the drive, or of each member.
	CapacityBytes   int64         `json:"capacity_bytes"`
	BytesPerSec     int64         `json:"bytes_per_second"` // in order; of a spinning one on its outermost tracks
	RPM             int           `json:"rpm"`
	AverageSeek     time.Duration `json:"average_seek"`
	WriteCacheBytes int64         `json:"write_cache_bytes"` // of a spinning one

	// SpanBytes is what random positions are spread over; 0: the whole device.
	SpanBytes int64 `json:"span_bytes"`

	custom *described
}

// described is a drive with the kernel's queue before it.
type described struct {
	drive hddsim.DriveParams
	queue hddsim.QueueParams
}

// ModelOf is a model of a spinning drive that is described in full, with the kernel's queue before it.
func ModelOf(p hddsim.DriveParams, q hddsim.QueueParams, spanBytes int64) *Model {
	return &Model{Kind: "hdd7200", SpanBytes: spanBytes, custom: &described{p, q}}
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
		return m.checkDrive()
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
	if err := m.checkDrive(); err != nil {
		return err
	}
	_, err := m.device(&hddsim.Machine{}, 0)
	return err
}

// Bounds of what a modelled drive may be: a run writes some GiB and lays out files of many.
const (
	capacityMin = 8 << 30
	capacityMax = 1 << 47
	spanMin     = 16 << 20
)

// checkDrive holds the parameters of a drive to what drives are like.
func (m *Model) checkDrive() error {
	spins := solids[m.Kind] == nil
	outside := func(v, least, most int64) bool { return v != 0 && (v < least || v > most) }
	switch {
	case !spins && (m.RPM != 0 || m.AverageSeek != 0 || m.WriteCacheBytes != 0):
		return fmt.Errorf("%s does not spin: turns, seek and write cache are those of spinning disks", m.Kind)
	case outside(m.CapacityBytes, capacityMin, capacityMax):
		return fmt.Errorf("a modelled disk of %s: it has 8 GiB to 128 TiB", profile.Size(m.CapacityBytes))
	case outside(m.BytesPerSec, 1e6, 20e9):
		return fmt.Errorf("a modelled disk that moves %s: 1 MB/s to 20 GB/s", rate(float64(m.BytesPerSec)))
	case outside(int64(m.RPM), 1000, 30_000):
		return fmt.Errorf("a modelled disk of %d turns a minute: 1,000 to 30,000", m.RPM)
	case outside(int64(m.AverageSeek), int64(100*time.Microsecond), int64(100*time.Millisecond)):
		return fmt.Errorf("an average seek of %v: 100µs to 100ms", m.AverageSeek)
	case outside(m.WriteCacheBytes, 64<<10, 16<<30):
		return fmt.Errorf("a write cache of %s: 64 KiB to 16 GiB", profile.Size(m.WriteCacheBytes))
	case outside(m.SpanBytes, spanMin, capacityMax):
		return fmt.Errorf("random positions over %s: 16 MiB or more, up to the whole disk", profile.Size(m.SpanBytes))
	}
	return nil
}

// drive is the spinning drive, or a set's member.
func (m *Model) drive(kind string) hddsim.DriveParams {
	if m.custom != nil {
		return m.custom.drive
	}
	p := drives[kind]()
	if m.CapacityBytes > 0 {
		p.CapacityBytes = m.CapacityBytes
	}
	if m.BytesPerSec > 0 { // the inner tracks keep their proportion to the outer ones
		p.OuterBytesPerSec, p.InnerBytesPerSec = m.BytesPerSec, int64(float64(m.BytesPerSec)*float64(p.InnerBytesPerSec)/float64(p.OuterBytesPerSec))
		p.InterfaceBytesPerSec = max(p.InterfaceBytesPerSec, 2*m.BytesPerSec)
	}
	if m.RPM > 0 {
		p.RPM = m.RPM
	}
	if m.AverageSeek > 0 {
		p = p.WithSeek(m.AverageSeek)
	}
	p.WriteCacheBytes = m.WriteCacheBytes
	return p
}

// solid is the drive without an arm.
func (m *Model) solid() hddsim.SSDParams {
	p := solids[m.Kind]()
	if m.CapacityBytes > 0 {
		p.CapacityBytes = m.CapacityBytes
	}
	if m.BytesPerSec > 0 {
		p.ReadBytesPerSec, p.WriteBytesPerSec = m.BytesPerSec, int64(float64(m.BytesPerSec)*float64(p.WriteBytesPerSec)/float64(p.ReadBytesPerSec))
	}
	return p
}

// device makes it, with the kernel's queue before each drive.
func (m *Model) device(mach *hddsim.Machine, seed uint64) (hddsim.Device, error) {
	if drives[m.Kind] != nil {
		q := hddsim.DefaultQueue()
		if m.custom != nil {
			q = m.custom.queue
		}
		return hddsim.NewQueue(mach, hddsim.NewDrive(mach, m.drive(m.Kind), seed), q), nil
	}
	if solids[m.Kind] != nil {
		return hddsim.NewQueue(mach, hddsim.NewSSD(mach, m.solid()), hddsim.DefaultQueue()), nil
	}
	p := hddsim.DefaultRAID(levels[m.Kind])
	p.ChunkBytes, p.StripeCache = m.ChunkBytes, m.StripeCache
	return hddsim.NewArray(mach, p, m.drive(m.Drive), m.Disks, seed)
}

// String is its name with its parameters, and the word.
func (m *Model) String() string {
	level, set := levels[m.Kind]
	s := m.Kind
	if set {
		s = fmt.Sprintf("RAID-%d of %d %s", level, m.Disks, m.Drive)
		if level != 1 {
			s += ", chunk " + profile.Size(m.ChunkBytes)
		}
		if level == 5 || level == 6 {
			s += fmt.Sprintf(", stripe cache %d", m.StripeCache)
		}
	}
	return s + m.differs() + " (modelled)"
}

// differs tells what of the drive is not as its kind has it.
func (m *Model) differs() (s string) {
	if m.custom != nil {
		s += ", as described"
	}
	if m.CapacityBytes > 0 {
		s += ", " + profile.Size(m.CapacityBytes)
	}
	if m.BytesPerSec > 0 {
		s += ", " + rate(float64(m.BytesPerSec))
	}
	if m.RPM > 0 {
		s += fmt.Sprintf(", %d rpm", m.RPM)
	}
	if m.AverageSeek > 0 {
		s += fmt.Sprintf(", seek %v", m.AverageSeek)
	}
	if m.WriteCacheBytes > 0 {
		s += ", write cache " + profile.Size(m.WriteCacheBytes)
	}
	if m.SpanBytes > 0 {
		s += ", random over " + profile.Size(m.SpanBytes)
	}
	return s
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
