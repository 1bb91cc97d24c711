package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"platter/bench/report"
	"platter/bench/spindlebench"
	"platter/cmd/client"
	"platter/io/backend"
	"platter/io/disk"
)

// onModel is where a bench runs when it needs no disk.
const onModel = "hddsim"

// spindleFlags are what both benches of spindles take.
type spindleFlags struct {
	on, device, backend, bytes string
	rounds                     int
	json                       bool
}

func (f *spindleFlags) bind(cmd *cobra.Command, rounds int, bytes string) {
	fl := cmd.Flags()
	fl.StringVar(&f.on, "on", onModel, "where: hddsim, a modelled disk in virtual time, or a directory")
	fl.StringVar(&f.device, "device", spindlebench.Devices[0], "the modelled disk: hdd7200, hdd5400, hdd15000, raid10, raid5 or ssd")
	fl.StringVar(&f.backend, "backend", "auto", "I/O backend for a directory")
	fl.StringVar(&f.bytes, "bytes", bytes, "room that a directory's bench may take")
	fl.IntVar(&f.rounds, "rounds", rounds, "rounds in a directory; a modelled run is the same every time")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// fs is the backend for a directory, and its budget.
func (f *spindleFlags) fs() (fs disk.FS, bytes int64, err error) {
	if f.rounds < 1 {
		return nil, 0, usagef("--rounds is at least 1")
	}
	if bytes, err = parseSize(f.bytes); err != nil {
		return nil, 0, usagef("--bytes: %v", err)
	}
	if fs, _, err = backend.Select(f.backend); err != nil {
		return nil, 0, err
	}
	// The plain readers are to be sendfile's, whatever io.send=auto takes; a back-end that can only copy goes on copying.
	if err := disk.SetSend(fs, disk.SendOptions{Method: disk.SendFile, CopyBytesMax: disk.SendCopyBytesMax}); err != nil && !errors.Is(err, disk.ErrUnsupported) {
		return nil, 0, err
	}
	return fs, bytes, nil
}

func progress(cmd *cobra.Command) io.Writer {
	if client.IsTerminal(cmd.ErrOrStderr()) {
		return cmd.ErrOrStderr()
	}
	return io.Discard
}

// result prints a bench.
func (f *spindleFlags) result(cmd *cobra.Command, r interface{ Print(io.Writer) error }) error {
	if f.json {
		return report.JSON(cmd.OutOrStdout(), r)
	}
	return r.Print(cmd.OutOrStdout())
}

func newBenchCold() *cobra.Command {
	var f spindleFlags
	var readers int
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "cold",
		Short: "Measure many readers of cold data beside an appender and a tail reader",
		Long: `Measure many readers whose data has left the page cache, beside an appender and a reader at its heels.

Compared are one sequential reader, as many as --readers each for itself (plain sendfile), and these through
the lane, by the page cache and by buffers; and the appender alone. On a directory the engine's own logs and
loopback sockets are used; what is written there is removed at the end.`,
		Example: `  platter bench cold
  platter bench cold --device raid5 --readers 64
  platter bench cold --on /mnt/disk/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if readers < 1 || span <= 0 {
				return usagef("--readers and --span are above 0")
			}
			r, err := f.cold(cmd, readers, span)
			if err != nil {
				return err
			}
			return f.result(cmd, r)
		},
	}
	f.bind(cmd, 3, "2GiB")
	cmd.Flags().IntVar(&readers, "readers", 16, "readers of cold data")
	cmd.Flags().DurationVar(&span, "span", 20*time.Second, "time of one run, at most; of the modelled disk's time 90s where it is not given")
	return cmd
}

func (f *spindleFlags) cold(cmd *cobra.Command, readers int, span time.Duration) (*spindlebench.ColdResult, error) {
	r := &spindlebench.ColdResult{Bench: "cold", On: f.on, Modelled: f.on == onModel}
	loads := spindlebench.ColdLoads(readers)
	if r.Modelled {
		c := spindlebench.DefaultColdModel(f.device)
		r.On = f.device
		if cmd.Flags().Changed("span") {
			c.Span = span
		}
		for _, l := range loads {
			fig, err := c.Run(l)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, []spindlebench.Figures{fig})
		}
		return r, nil
	}
	fs, bytes, err := f.fs()
	if err != nil {
		return nil, err
	}
	c := spindlebench.DefaultColdDir(fs, f.on)
	c.Readers, c.BudgetBytes, c.Rounds, c.Span, c.Progress = readers, bytes, f.rounds, span, progress(cmd)
	r.Rows, err = c.Run(cmd.Context(), loads)
	return r, err
}

func newBenchPartitions() *cobra.Command {
	var f spindleFlags
	var files int
	cmd := &cobra.Command{
		Use:   "partitions",
		Short: "Measure appends over many partitions against one file",
		Long: `Measure appends without sync over many partitions against those to one file on the same disk.

On a modelled disk the kernel's dirty limit at which that breaks is found, too. On a directory a run ends
with a sync, so that all of it has reached the disk; what is written there is removed.`,
		Example: `  platter bench partitions
  platter bench partitions --on /mnt/disk/bench --partitions 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if files < 1 {
				return usagef("--partitions is above 0")
			}
			r, err := f.partitions(cmd.Context(), cmd, files)
			if err != nil {
				return err
			}
			return f.result(cmd, r)
		},
	}
	f.bind(cmd, 5, "2GiB")
	cmd.Flags().IntVar(&files, "partitions", 256, "partitions that grow side by side")
	return cmd
}

func (f *spindleFlags) partitions(ctx context.Context, cmd *cobra.Command, files int) (*spindlebench.PartitionResult, error) {
	r := &spindlebench.PartitionResult{Bench: "partitions", On: f.on, Modelled: f.on == onModel, Durability: "pagecache"}
	ways := spindlebench.PartitionWays(files)
	if r.Modelled {
		c := spindlebench.DefaultPartitionModel()
		c.Device, r.On = f.device, f.device
		for _, w := range ways {
			a, err := c.Run(w)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, []spindlebench.Appended{a})
		}
		var err error
		r.LimitBytes, r.Budgets, err = c.Break(ways[1], 0.9)
		return r, err
	}
	fs, bytes, err := f.fs()
	if err != nil {
		return nil, err
	}
	c := spindlebench.DefaultPartitionDir(fs, f.on)
	c.RunBytes, c.Rounds, c.Progress = bytes, f.rounds, progress(cmd)
	r.Rows, err = c.Run(ctx, ways)
	return r, err
}
