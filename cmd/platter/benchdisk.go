package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"platter/bench/disklab"
	"platter/bench/report"
	"platter/cmd/client"
	"platter/io/portable"
)

// diskFlags are those of bench disk.
type diskFlags struct {
	o                           disklab.Options
	m                           disklab.Model
	budget                      string
	sizes                       map[string]*string // of the model, by flag
	only                        []string
	jsonFile, htmlFile, plotDir string
}

func newBenchDisk() *cobra.Command {
	var f diskFlags
	cmd := &cobra.Command{
		Use:   "disk",
		Short: "Measure what your disk is good for, and what to set (or a modelled one)",
		Long: `Measure what a disk is good for: in order and at random, reads and writes, queue depths, what a sync costs,
how many files may grow side by side, cold readers beside an appender, segments and growing ahead. It says in
plain words what kind of disk it saw, and which settings follow, each with the measurement behind it.

On a real disk (--dir) the device itself is measured past the page cache (O_DIRECT), where the file system has that, and
the rest through the page cache, as the broker does. Files go to a directory of their own below --dir, within
--budget, and are removed at the end, also after Ctrl-C.

With --profile it is a modelled disk in virtual time instead, and every figure is called modelled.`,
		Example: `  platter bench disk --dir /mnt/disk --html disk.html
  platter bench disk --profile raid5 --disks 6 --chunk 64KiB
  platter bench disk --only sync,cold --json here.json
  platter bench disk compare here.json there.json`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.o.Dir, "dir", ".", "directory on the disk to measure")
	fl.StringVar(&f.o.Backend, "backend", "auto", "I/O backend for what goes through the page cache")
	fl.StringVar(&f.budget, "budget", "", "most that the files hold at a time (512MiB, or half of what is free)")
	fl.DurationVar(&f.o.Time, "time", disklab.DefaultTime, "time of a run on a real disk, about; two minutes at the default at most")
	fl.BoolVar(&f.o.Full, "full", false, "every size with every queue depth; give it more --time")
	fl.StringSliceVar(&f.only, "only", nil, "only these groups: device, cache, sync, growing, cold, segment")
	fl.Uint64Var(&f.o.Seed, "seed", 1, "of random positions")
	fl.StringVar(&f.m.Kind, "profile", "", "a modelled disk instead: "+strings.Join(disklab.Models, ", "))
	fl.IntVar(&f.m.Disks, "disks", 0, "modelled: disks of a RAID set (0: 4, of raid1 2, of raid5 and raid6 6)")
	fl.IntVar(&f.m.StripeCache, "stripe-cache", 0, "modelled: md's stripe_cache_size of raid5 and raid6 (0: 256, md's default)")
	fl.StringVar(&f.m.Drive, "drive", "", "modelled: kind of a set's disks: hdd7200, hdd5400 or hdd15000")
	fl.IntVar(&f.m.RPM, "rpm", 0, "modelled: turns a minute of a spinning disk (0: as its kind has it)")
	fl.DurationVar(&f.m.AverageSeek, "seek", 0, "modelled: average seek of a spinning disk (0: as its kind has it)")
	f.sizes = map[string]*string{
		"chunk":       fl.String("chunk", "", "modelled: chunk of a RAID set (512KiB)"),
		"capacity":    fl.String("capacity", "", "modelled: size of the disk, or of each one of a set (as its kind has it)"),
		"rate":        fl.String("rate", "", "modelled: bytes a second in order of the disk, or of each one of a set (as its kind has it)"),
		"write-cache": fl.String("write-cache", "", "modelled: the spinning disk's own write cache (none)"),
		"span":        fl.String("span", "", "modelled: spread random positions over so much (the whole disk)"),
	}
	fl.StringVar(&f.jsonFile, "json", "", "write the result to this file, - for standard output instead of the table")
	fl.StringVar(&f.htmlFile, "html", "", "write one self-contained page with plots to this file")
	fl.StringVar(&f.plotDir, "plot", "", "draw the plots into this directory, as PNG and SVG")
	cmd.AddCommand(newBenchDiskCompare())
	return cmd
}

// modelFlags go with --profile.
var modelFlags = []string{"disks", "chunk", "stripe-cache", "drive", "rpm", "seek", "capacity", "rate", "write-cache", "span"}

// options checks the flags.
func (f *diskFlags) options(cmd *cobra.Command) (o disklab.Options, err error) {
	o = f.o
	if f.budget != "" {
		if o.BudgetBytes, err = parseSize(f.budget); err != nil {
			return o, usagef("--budget: %v", err)
		}
		if o.BudgetBytes < disklab.BudgetMin {
			return o, usagef("--budget is at least 16MiB")
		}
	}
	if o.Time < time.Second {
		return o, usagef("--time is at least 1s")
	}
	for _, g := range f.only {
		if !slices.Contains(disklab.Groups, disklab.Group(g)) {
			return o, usagef("--only: no group %q: there are %v", g, disklab.Groups)
		}
		o.Only = append(o.Only, disklab.Group(g))
	}
	if f.m.Kind == "" {
		for _, name := range modelFlags {
			if cmd.Flags().Changed(name) {
				return o, usagef("--%s goes with --profile, a modelled disk", name)
			}
		}
		return o, nil
	}
	for _, name := range []string{"dir", "budget", "backend", "time"} {
		if cmd.Flags().Changed(name) {
			return o, usagef("--%s is for a real disk: it does not go with --profile, a modelled one", name)
		}
	}
	m := f.m
	for name, into := range map[string]*int64{"chunk": &m.ChunkBytes, "capacity": &m.CapacityBytes, "rate": &m.BytesPerSec,
		"write-cache": &m.WriteCacheBytes, "span": &m.SpanBytes} {
		text := *f.sizes[name]
		if text == "" {
			continue
		}
		if *into, err = parseSize(text); err != nil {
			return o, usagef("--%s: %v", name, err)
		}
	}
	if err := m.Check(); err != nil {
		return o, usagef("%v", err)
	}
	o.Model = &m
	return o, nil
}

func (f *diskFlags) run(cmd *cobra.Command) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	var end func()
	o.Progress, end = diskProgress(cmd.ErrOrStderr())
	r, err := disklab.Run(cmd.Context(), o)
	end()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted; what it had made is removed")
	}
	if err != nil {
		return err
	}
	for _, out := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{f.jsonFile, func(w io.Writer) error { return report.JSON(w, r) }},
		{f.htmlFile, r.Page},
	} {
		if out.file == "" || out.file == "-" {
			continue
		}
		w, err := createFile(out.file)
		if err != nil {
			return err
		}
		if err := errors.Join(out.write(w), w.Close()); err != nil {
			return err
		}
	}
	if f.plotDir != "" {
		if err := portable.New().MkdirAll(f.plotDir); err != nil {
			return err
		}
		create := func(name string) (io.WriteCloser, error) { return createFile(filepath.Join(f.plotDir, name)) }
		if err := r.Plots(create); err != nil {
			return err
		}
	}
	if f.jsonFile == "-" {
		return report.JSON(cmd.OutOrStdout(), r)
	}
	return r.Print(cmd.OutOrStdout())
}

// diskProgress shows a bar at a terminal.
func diskProgress(w io.Writer) (progress func(done, total int, name string), end func()) {
	if !client.IsTerminal(w) {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	progress = func(done, total int, name string) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(),
				progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
		}
		bar.Describe(fmt.Sprintf("%-48.48s", name))
		_ = bar.Set(done)
	}
	return progress, func() {
		if bar != nil {
			_ = bar.Exit()
			_ = bar.Clear()
		}
	}
}

func newBenchDiskCompare() *cobra.Command {
	return &cobra.Command{
		Use:     "compare FILE FILE",
		Short:   "Lay two results side by side: two disks, two kernels, two file systems",
		Example: "  platter bench disk compare ext4.json xfs.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := loadDisk(args[0])
			if err != nil {
				return err
			}
			b, err := loadDisk(args[1])
			if err != nil {
				return err
			}
			return disklab.Compare(cmd.OutOrStdout(), args[0], a, args[1], b)
		},
	}
}

func loadDisk(name string) (*disklab.Result, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := disklab.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
