package crashdisk

import (
	"errors"
	"math/rand/v2"
	"testing"

	"platter/io/backend"
	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/memdisk"
	"platter/io/portable"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	for _, name := range backend.Built() {
		t.Run(name, func(t *testing.T) {
			disktest.Run(t, func(t *testing.T) (disk.FS, string) {
				real, _, err := backend.Select(name)
				must(t, err)
				fs, err := New(real, t.TempDir(), memdisk.New(memdisk.Options{}))
				must(t, err)
				must(t, fs.MkdirAll("/d"))
				t.Cleanup(func() {
					if err := fs.Err(); err != nil {
						t.Error(err)
					}
				})
				return fs, "/d"
			})
		})
	}
}

// After a power cut the real directory has what the model has, and what is read says so; after a kill everything is there.
func TestCrashAndKill(t *testing.T) {
	for seed := range uint64(20) {
		fs, err := New(portable.New(), t.TempDir(), memdisk.New(memdisk.Options{}))
		must(t, err)
		rng := rand.New(rand.NewPCG(seed, 1))
		must(t, errors.Join(fs.MkdirAll("/d/e"), fs.SyncDir("/"), fs.SyncDir("/d")))
		for range 5 {
			fs.CrashAt(fs.Count()+1+rng.Int64N(60), seed)
			lock, err := fs.Lock("/d/lock")
			if err != nil && !fs.Crashed() {
				t.Fatal(err)
			}
			for !fs.Crashed() {
				step(t, fs, rng)
			}
			if rng.IntN(2) == 0 {
				fs.Crash(rng.Uint64())
			} else {
				fs.Kill()
			}
			fs.CrashAt(0, 0)
			if lock != nil {
				lock.Close()
			}
			fs.compareTree("/")
			step(t, fs, rng)
			fs.Kill() // compares in whole
		}
		must(t, fs.Err())
	}
}

func step(t *testing.T, fs *FS, rng *rand.Rand) {
	path := "/d/e/" + string(rune('a'+rng.IntN(4)))
	f, err := fs.Open(path, disk.Create)
	if err != nil {
		if !fs.Crashed() {
			t.Fatal(err)
		}
		return
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return
	}
	switch rng.IntN(6) {
	case 0:
		err = f.Truncate(rng.Int64N(size + 1))
	case 1:
		err = f.Sync()
	case 2:
		err = fs.SyncDir("/d/e")
	case 3:
		err = fs.Rename(path, "/d/e/z")
	case 4:
		p := make([]byte, size)
		_, err = f.ReadAt(p, 0)
	default:
		p := make([]byte, rng.IntN(20_000))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		_, err = f.WriteV([][]byte{p[:len(p)/2], p[len(p)/2:]}, size)
	}
	if err != nil && !fs.Crashed() && !disk.IsNotExist(err) {
		t.Fatal(err)
	}
}

// lying returns one wrong bit, or forgets a write: a checker that never failed has proved nothing.
type lying struct {
	disk.FS
	forget bool
}

type lyingFile struct {
	disk.File
	l *lying
}

func (l *lying) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := l.FS.Open(path, m)
	return &lyingFile{f, l}, err
}

func (f *lyingFile) ReadAt(p []byte, pos int64) (int, error) {
	n, err := f.File.ReadAt(p, pos)
	if n > 100 && !f.l.forget {
		p[77] ^= 4
	}
	return n, err
}

func (f *lyingFile) WriteV(bufs [][]byte, pos int64) (int64, error) {
	if f.l.forget {
		return disk.VectorBytes(bufs), nil
	}
	return f.File.WriteV(bufs, pos)
}

func TestFindsALyingBackend(t *testing.T) {
	for _, forget := range []bool{false, true} {
		fs, err := New(&lying{portable.New(), forget}, t.TempDir(), memdisk.New(memdisk.Options{}))
		must(t, err)
		f, err := fs.Open("/f", disk.Create)
		must(t, err)
		_, err = f.WriteV([][]byte{make([]byte, 1000)}, 0)
		must(t, err)
		if _, err := f.ReadAt(make([]byte, 1000), 0); !errors.Is(err, ErrDiffers) || !errors.Is(fs.Err(), ErrDiffers) {
			t.Errorf("forget %v: %v, %v", forget, err, fs.Err())
		}
		fs.Kill()
	}
}
