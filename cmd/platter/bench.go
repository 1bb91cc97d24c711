package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"platter/bench/brokerbench"
	"platter/bench/ceiling"
	"platter/bench/iobench"
	"platter/bench/report"
	"platter/bench/stats"
	"platter/cmd/client"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the broker, and the disk below it, against what this machine has to give",
		Long: `Measure the broker against bare programs that make only the copies the task needs.

Runs are taken in neighbouring pairs in one session; every figure is a median, and the CPU seconds are
those of the measured process alone. Files go to a temporary directory below --dir, which decides the
disk, and are removed at the end, also after Ctrl-C.`,
		Example: `  platter bench ceiling    the bare programs alone
  platter bench produce    the broker's produce beside them
  platter bench fetch
  platter bench depth      how many batches a write to a log takes
  platter bench replication  what three replicas cost over one
  platter bench disk       what your disk is good for, and what to set
  platter bench io         the I/O backends against each other, on your disk`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop) // the second one ends the process
			cmd.SetContext(ctx)
		},
	}
	cmd.AddCommand(newBenchCeiling(), newBenchPair("produce"), newBenchPair("fetch"), newBenchDepth(), newBenchReplication(), newBenchIO(), newBenchRestart(), newBenchFootprint(), newBenchBare(), newBenchCold(), newBenchPartitions(), newBenchDisk())
	return cmd
}

type benchFlags struct {
	o     brokerbench.Options
	sizes []string
	bytes string
	json  bool
}

// bind adds what every bench takes.
func (f *benchFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.o.Dir, "dir", ".", "directory on the disk to measure")
	fl.IntVar(&f.o.Runs, "runs", 5, "runs of each measurement")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// bindBroker adds what a bench takes that starts a broker.
func (f *benchFlags) bindBroker(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.o.Settings, "set", nil, "broker setting name=value, may be repeated")
}

// bindLoad adds the shape of the load.
func (f *benchFlags) bindLoad(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.sizes, "batch-bytes", []string{"64KiB", "256KiB", "1MiB"}, "batch sizes, a row each")
	fl.IntVar(&f.o.RecordBytes, "record-bytes", 1024, "bytes of a record's value")
	fl.StringVar(&f.bytes, "run-bytes", "1GiB", "payload of one run")
	fl.IntVar(&f.o.InFlight, "in-flight", 8, "unanswered requests on the connection")
	fl.Int16Var(&f.o.Acks, "acks", 1, "acks of produce requests (1 or -1)")
}

func (f *benchFlags) options(cmd *cobra.Command) (brokerbench.Options, error) {
	o := f.o
	if o.Runs < 1 {
		return o, usagef("--runs is at least 1")
	}
	o.Progress = io.Discard
	if client.IsTerminal(cmd.ErrOrStderr()) {
		o.Progress = cmd.ErrOrStderr()
	}
	var err error
	o.Exe, err = os.Executable()
	return o, err
}

// load is options and the shape of the load.
func (f *benchFlags) load(cmd *cobra.Command) (brokerbench.Options, error) {
	o, err := f.options(cmd)
	if err != nil {
		return o, err
	}
	if o.InFlight < 1 || o.RecordBytes < 1 {
		return o, usagef("--in-flight and --record-bytes are at least 1")
	}
	if o.Acks != 1 && o.Acks != -1 {
		return o, usagef("--acks is 1 or -1: without acknowledgements a run has no end")
	}
	var batchBytes []int
	for _, s := range f.sizes {
		n, err := parseSize(s)
		if err != nil {
			return o, usagef("--batch-bytes: %v", err)
		}
		batchBytes = append(batchBytes, int(n))
	}
	o.BatchBytes = batchBytes
	if o.RunBytes, err = parseSize(f.bytes); err != nil {
		return o, usagef("--run-bytes: %v", err)
	}
	return o, nil
}

// parseSize reads a size such as 65536, 64KiB, 1MiB, 2GiB (or 64k, 1m, 2g).
func parseSize(s string) (int64, error) {
	num := strings.ToLower(strings.TrimSpace(s))
	unit := int64(1)
	for suffix, u := range map[string]int64{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40} {
		if n, ok := strings.CutSuffix(num, suffix); ok {
			num, unit = n, u
			break
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 1 || n > (1<<50)/unit {
		return 0, fmt.Errorf("%q is no size (such as 65536, 64KiB, 2GiB)", s)
	}
	return n * unit, nil
}

func newBenchCeiling() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "ceiling",
		Short:   "Run the bare programs alone: socket → CRC32C → file, and file → sendfile → socket",
		Example: "  platter bench ceiling\n  platter bench ceiling --dir /mnt/raid --batch-bytes 16KiB,1MiB",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.load(cmd)
			if err != nil {
				return err
			}
			type row struct {
				What       string         `json:"what"`
				BatchBytes int            `json:"batch_bytes"`
				Runs       []stats.Sample `json:"runs"`
			}
			var rows []row
			err = brokerbench.Ceiling(cmd.Context(), o, func(what string, size int, ss []stats.Sample) error {
				rows = append(rows, row{what, size, ss})
				if f.json {
					return nil
				}
				return report.Ceiling(cmd.OutOrStdout(), what, size, ss)
			})
			if err != nil || !f.json {
				return err
			}
			return report.JSON(cmd.OutOrStdout(), rows)
		},
	}
	f.bind(cmd)
	f.bindLoad(cmd)
	return cmd
}

func newBenchPair(what string) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     what,
		Short:   "Measure " + what + " against the bare program, in pairs of runs",
		Example: fmt.Sprintf("  platter bench %[1]s\n  platter bench %[1]s --batch-bytes 64KiB --runs 9 --json\n  platter bench %[1]s --profile %[1]s.pprof", what),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.load(cmd)
			if err != nil {
				return err
			}
			run := brokerbench.Produce
			if what == "fetch" {
				run = brokerbench.Fetch
			}
			res, err := run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.json {
				return report.JSON(cmd.OutOrStdout(), res)
			}
			return report.Broker(cmd.OutOrStdout(), res)
		},
	}
	f.bind(cmd)
	f.bindLoad(cmd)
	f.bindBroker(cmd)
	cmd.Flags().StringVar(&f.o.ProfilePath, "profile", "", "write a CPU profile of the broker (10 s of the last row) to this file")
	if what == "fetch" {
		cmd.Flags().Int32Var(&f.o.FetchBytes, "fetch-bytes", 8<<20, "max bytes of one fetch request")
	}
	return cmd
}

func newBenchRestart() *cobra.Command {
	var f benchFlags
	var partitions int
	cmd := &cobra.Command{
		Use:     "restart",
		Short:   "Measure how soon a broker serves again after kill -9, and after a clean stop",
		Example: "  platter bench restart --partitions 1000",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			res, err := brokerbench.Restart(cmd.Context(), o, partitions)
			if err != nil {
				return err
			}
			if f.json {
				return report.JSON(cmd.OutOrStdout(), res)
			}
			return report.Restart(cmd.OutOrStdout(), res)
		},
	}
	f.bind(cmd)
	f.bindBroker(cmd)
	cmd.Flags().IntVar(&partitions, "partitions", 1000, "partitions of the broker")
	return cmd
}

func newBenchFootprint() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "footprint",
		Short:   "Measure a broker that has little to do: time to the first answer, resident memory",
		Example: "  platter bench footprint",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			res, err := brokerbench.MeasureFootprint(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.json {
				return report.JSON(cmd.OutOrStdout(), res)
			}
			return report.Footprint(cmd.OutOrStdout(), res)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.o.Dir, "dir", ".", "directory for the broker's data")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	f.o.Runs = 1
	f.bindBroker(cmd)
	return cmd
}

// newBenchBare is the bare program that the other benches start as a process of its own.
func newBenchBare() *cobra.Command {
	var sink, source string
	var drain bool
	var sendBuffer int
	cmd := &cobra.Command{
		Use:    "bare",
		Short:  "Serve as a bare program on a free port of loopback, and print the address",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n := given(sink != "") + given(source != "") + given(drain); n != 1 {
				return usagef("one of --sink DIR, --source FILE and --drain is needed")
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			go func() {
				<-cmd.Context().Done()
				l.Close()
			}()
			fmt.Fprintln(cmd.OutOrStdout(), l.Addr())
			if drain {
				go func() { // whoever started it holds its input open
					_, _ = io.Copy(io.Discard, cmd.InOrStdin())
					l.Close()
				}()
				return iobench.Drain(l)
			}
			return ceiling.Serve(l, ceiling.Options{SinkDir: sink, SourceFile: source, SendBufferBytes: sendBuffer})
		},
	}
	cmd.Flags().StringVar(&sink, "sink", "", "append what is received to files in this directory")
	cmd.Flags().StringVar(&source, "source", "", "send this file")
	cmd.Flags().BoolVar(&drain, "drain", false, "throw away what bench io sends, until the input ends")
	cmd.Flags().IntVar(&sendBuffer, "send-buffer", -1, "bytes of a socket's send buffer; -1: the system's")
	return cmd
}

func given(b bool) int {
	if b {
		return 1
	}
	return 0
}
