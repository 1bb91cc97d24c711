package agree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"platter/bench/disklab"
)

// Check tells whether fio is there: nil, or what is missing.
func Check() error {
	if _, err := exec.LookPath("fio"); err != nil {
		return errors.New("comparing with fio needs it (Debian: apt-get install fio)")
	}
	return nil
}

// fio plays the cells of a disk lab as jobs of fio, in a directory of its own.
type fio struct {
	dir  string
	span int64
	time time.Duration
}

func (f fio) file() string { return filepath.Join(f.dir, "span") }

// layOut writes the file that is read and overwritten.
func (f fio) layOut(ctx context.Context) error {
	_, err := f.play(ctx, "--filename="+f.file(), fmt.Sprintf("--size=%d", f.span), "--rw=write", "--bs=4m", "--direct=1", "--end_fsync=1", "--fallocate=none")
	return err
}

// clear removes the files that have grown.
func (f fio) clear() error { return os.RemoveAll(f.grown()) }

func (f fio) grown() string { return filepath.Join(f.dir, "grown") }

// settle waits for what the file system has still to write of the last job.
func (f fio) settle() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// job is what fio is told for a cell. Files that grow are new ones; all others are within the span that is laid out.
func (f fio) job(c *disklab.Cell, like Figure) []string {
	rw := map[string]string{disklab.Sequential: "", disklab.Random: "rand"}[c.Pattern] + c.Op
	size := c.SizeBytes
	if like.Ops > 0 {
		size = like.Bytes / like.Ops
	}
	args := []string{"--rw=" + rw, fmt.Sprintf("--bs=%d", size), "--fallocate=none"}
	timed := []string{"--time_based", fmt.Sprintf("--runtime=%dms", f.time.Milliseconds())}
	span := []string{"--filename=" + f.file(), fmt.Sprintf("--size=%d", f.span)}
	// A job a file, so that they are synced side by side, as the broker's are: one job would sync its files one after the other.
	grow := func(files int, each int64) []string {
		_ = os.Mkdir(f.grown(), 0o755) // fio says it better where that fails
		return []string{"--directory=" + f.grown(), fmt.Sprintf("--numjobs=%d", files), fmt.Sprintf("--size=%d", each),
			"--thread", "--group_reporting"}
	}
	switch {
	case c.Group == disklab.Device && c.Depth == 1:
		return append(append(append(args, "--direct=1", "--ioengine=psync"), span...), timed...)
	case c.Group == disklab.Device:
		return append(append(append(args, "--direct=1", "--ioengine=libaio", fmt.Sprintf("--iodepth=%d", c.Depth)), span...), timed...)
	case c.Group == disklab.Cached && c.Op == disklab.Read:
		return append(append(append(args, "--ioengine=psync", "--invalidate=1"), span...), timed...)
	case c.Group == disklab.Cached && c.Pattern == disklab.Random:
		return append(append(append(args, "--ioengine=psync", "--fdatasync=1", fmt.Sprintf("--numjobs=%d", c.Depth), "--thread", "--group_reporting"), span...), timed...)
	case c.Group == disklab.Syncs:
		return append(append(append(args, "--ioengine=psync", "--fdatasync=1"), grow(1, f.span)...), timed...)
	case c.Group == disklab.Cached, c.Group == disklab.Growing:
		files := max(1, c.Files)
		return append(append(args, "--ioengine=psync", "--end_fsync=1"), grow(files, max(size, like.Bytes/int64(files)/size*size))...)
	}
	return nil
}

// result is what is read of fio's JSON (fio(1), "JSON output").
type result struct {
	Jobs []struct {
		Error       int
		Read, Write struct {
			IOBytes int64 `json:"io_bytes"`
			Runtime int64 // milliseconds
			Total   int64 `json:"total_ios"`
		}
	}
}

// play runs one job.
func (f fio) play(ctx context.Context, args ...string) (Figure, error) {
	cmd := exec.CommandContext(ctx, "fio", append([]string{"--name=cell", "--output-format=json", "--randrepeat=0"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return Figure{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return parse(out.Bytes())
}

func parse(p []byte) (got Figure, err error) {
	at := bytes.IndexByte(p, '{') // before it stand notes of fio's
	if at < 0 {
		return got, fmt.Errorf("fio says no JSON: %.200q", p)
	}
	var r result
	if err := json.Unmarshal(p[at:], &r); err != nil {
		return got, fmt.Errorf("fio's JSON: %w", err)
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Error != 0 {
		return got, fmt.Errorf("fio reports %d jobs, and an error: %.200q", len(r.Jobs), p)
	}
	j := r.Jobs[0]
	got.Ops, got.Bytes = j.Read.Total+j.Write.Total, j.Read.IOBytes+j.Write.IOBytes
	got.Seconds = float64(max(j.Read.Runtime, j.Write.Runtime)) / 1e3
	if got.Ops == 0 || got.Seconds == 0 {
		return got, fmt.Errorf("fio did nothing: %.200q", p)
	}
	return got, nil
}
