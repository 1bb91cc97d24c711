package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopDevice is a loop device over this lab's file. It detaches itself when nobody has it open any more
// (LO_FLAGS_AUTOCLEAR), so that it outlives neither the daemon nor the mount.
type loopDevice struct {
	number int
	path   string
	held   *os.File // keeps it attached until it is mounted
}

// loopConfig is struct loop_config of linux/loop.h, for LOOP_CONFIGURE (Linux 5.8 and newer): 4 bytes file
// descriptor, 4 bytes block size, struct loop_info64, 64 bytes reserved.
type loopConfig struct {
	fd        uint32
	blockSize uint32
	info      unix.LoopInfo64
	_         [8]uint64
}

const (
	loopConfigure = 0x4C0A // LOOP_CONFIGURE
	loopMajor     = 7
)

// attachTries: another process may take the free device first.
const attachTries = 16

// attach takes a free loop device for backing. nodes is where a device node is made if /dev has none.
func attach(backing, nodes string, direct bool) (*loopDevice, error) {
	file, err := os.OpenFile(backing, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	c := loopConfig{fd: uint32(file.Fd()), blockSize: sectorBytes}
	c.info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if direct {
		c.info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	copy(c.info.File_name[:len(c.info.File_name)-1], backing)
	for range attachTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		d := &loopDevice{number: number, path: fmt.Sprintf("/dev/loop%d", number)}
		if d.held, err = d.open(nodes); err != nil {
			return nil, err
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.held.Fd(), loopConfigure, uintptr(unsafe.Pointer(&c)))
		if errno == 0 {
			return d, d.tune()
		}
		d.held.Close()
		if errno != unix.EBUSY {
			return nil, fmt.Errorf("attaching %s to %s: %w", backing, d.path, errno)
		}
	}
	return nil, errors.New("every loop device that was free was taken by somebody else")
}

// open opens the device's node; in a container /dev may not have it.
func (d *loopDevice) open(nodes string) (*os.File, error) {
	f, err := os.OpenFile(d.path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	d.path = filepath.Join(nodes, "loop"+strconv.Itoa(d.number))
	if err := unix.Mknod(d.path, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(d.number)))); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("making %s: %w", d.path, err)
	}
	return os.OpenFile(d.path, os.O_RDWR|unix.O_CLOEXEC, 0)
}

// tune makes the kernel treat it as the disk that it models.
func (d *loopDevice) tune() error {
	for _, set := range []struct {
		name, value string
		must        bool
	}{
		{"rotational", "1", true},
		{"max_sectors_kb", strconv.Itoa(requestBytesMax >> 10), false},
		// What a rotational disk gets by itself; a loop device has become one too late for that.
		{"scheduler", "mq-deadline", false},
		{"nr_requests", strconv.Itoa(2 * requestsMax), false},
		{"wbt_lat_usec", "75000", false},
		{"read_ahead_kb", "128", false},
	} {
		err := os.WriteFile(filepath.Join(d.sys(), "queue", set.name), []byte(set.value), 0)
		if err != nil && set.must {
			d.held.Close()
			return fmt.Errorf("%s: %w", d.path, err)
		}
	}
	return nil
}

func (d *loopDevice) sys() string { return fmt.Sprintf("/sys/block/loop%d", d.number) }

// release lets go of a device that is mounted; the mount keeps it attached.
func (d *loopDevice) release() {
	if d.held != nil {
		d.held.Close()
		d.held = nil
	}
}

// attachedTo is the file behind the device, "" when there is none.
func (d *loopDevice) attachedTo() string {
	b, err := os.ReadFile(filepath.Join(d.sys(), "loop", "backing_file"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(string(b)), " (deleted)")
}

// detach detaches the device if it is still attached to backing, and says nothing when it is not.
func (d *loopDevice) detach(backing string) error {
	d.release()
	if d.attachedTo() != backing {
		return nil
	}
	f, err := os.OpenFile(d.path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// Between the look and this call nobody else can attach it: it is attached.
	if _, err = unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD); errors.Is(err, unix.ENXIO) {
		err = nil
	}
	return err
}
