package profile

import (
	"strings"
)

// disk reads what sysfs tells of one disk.
func (r *reader) disk(name string) Disk {
	dir := "sys/block/" + name
	d := Disk{
		Name: name, Model: r.model(dir + "/device/"),
		Rotational: r.text(dir+"/queue/rotational", 16) == "1",
		QueueDepth: int(min(r.number(dir+"/device/queue_depth"), 1<<20)), Requests: int(min(r.number(dir+"/queue/nr_requests"), 1<<20)),
		ReadAheadBytes: r.number(dir+"/queue/read_ahead_kb") << 10, RequestBytes: r.number(dir+"/queue/max_sectors_kb") << 10,
		OptimalBytes: r.number(dir + "/queue/optimal_io_size"), WriteCache: r.text(dir+"/queue/write_cache", 64) == "write back",
		Scheduler: chosen(r.text(dir+"/queue/scheduler", 256)), SizeBytes: r.number(dir+"/size") << 9,
	}
	d.Kind, d.Reason = classify(d, r.exists(dir+"/queue/rotational"))
	return d
}

// model is vendor and model. A vendor that is a number is a PCI or virtio one, and says nothing here.
func (r *reader) model(dir string) string {
	vendor, model := r.text(dir+"vendor", 256), r.text(dir+"model", 256)
	if strings.HasPrefix(vendor, "0x") {
		vendor = ""
	}
	words := strings.Fields(strings.TrimPrefix(vendor, "ATA") + " " + model)
	return strings.Join(words, " ")
}

// chosen is the scheduler in brackets: "none [mq-deadline] kyber".
func chosen(list string) string {
	if _, rest, ok := strings.Cut(list, "["); ok {
		name, _, _ := strings.Cut(rest, "]")
		return name
	}
	return ""
}

// prefixes of the kernel's names that say what a disk is (Documentation/admin-guide/devices.txt).
var prefixes = []struct {
	prefix, reason string
	kind           Kind
}{
	{"vd", "a virtio disk, and its rotational flag says nothing about the host's", Virtual},
	{"xvd", "a Xen disk, and its rotational flag says nothing about the host's", Virtual},
	{"ubd", "a disk of user-mode Linux", Virtual},
	{"nbd", "a network block device", Network},
	{"rbd", "a Ceph block device", Network},
	{"drbd", "replicated over a network", Network},
	{"ram", "a RAM disk", Memory},
	{"zram", "compressed memory", Memory},
	{"pmem", "persistent memory", NVMe},
	{"mmcblk", "a flash card", SSD},
	{"mtdblock", "raw flash", SSD},
}

// models of disks that are a hypervisor's or a cloud's, in lower case; the first that is found counts.
var models = []struct {
	part, reason string
	kind         Kind
}{
	{"ec2 nvme instance storage", "a cloud's local flash", NVMe},
	{"nvme_card-pd", "a cloud's network disk", Virtual},
	{"nvme_card", "a cloud's local flash", NVMe},
	{"ephemeraldisk", "a cloud's local flash", SSD},
	{"amazon elastic block store", "a cloud's network disk", Virtual},
	{"persistentdisk", "a cloud's network disk", Virtual},
	{"alibaba cloud elastic block", "a cloud's network disk", Virtual},
	{"msft", "a Hyper-V disk", Virtual},
	{"virtual", "a virtual disk", Virtual},
	{"qemu", "an emulated disk", Virtual},
	{"vmware", "a VMware disk", Virtual},
	{"vbox", "a VirtualBox disk", Virtual},
	{"bhyve", "a bhyve disk", Virtual},
	{"prlsas", "a Parallels disk", Virtual},
	{"iet ", "an iSCSI target", Network},
	{"lio-org", "an iSCSI target", Network},
	{"iscsi", "an iSCSI target", Network},
}

// controllers are hardware RAID: the kernel sees one disk where there are many.
var controllers = []string{"perc", "megaraid", "mr9", "smc3", "smart array", "logical volume", "logicaldrv", "serveraid", "3ware", "9750-", "raid"}

// classify decides what a disk is; told: the kernel says whether it rotates.
func classify(d Disk, told bool) (Kind, string) {
	model := strings.ToLower(d.Model)
	for _, m := range models {
		if strings.Contains(model+" ", m.part) {
			return m.kind, m.reason + " (" + d.Model + ")"
		}
	}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(d.Name, p.prefix); ok && rest != "" {
			return p.kind, p.reason
		}
	}
	flag := "it does not rotate"
	if d.Rotational {
		flag = "it rotates"
	}
	for _, c := range controllers {
		if told && strings.Contains(model, c) {
			flag += ", says a controller (" + d.Model + ") that hides what is behind it"
			break
		}
	}
	switch {
	case strings.HasPrefix(d.Name, "nvme"):
		return NVMe, "an NVMe disk"
	case !told:
		return Unknown, "the kernel does not say whether it rotates"
	case d.Rotational:
		return HDD, flag
	}
	return SSD, flag
}
