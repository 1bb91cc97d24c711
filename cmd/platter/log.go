package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"platter/cmd/client"
	"platter/engine/inspect"
	"platter/io/backend"
	"platter/io/disk"
)

func logCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Look into data directories, and check them",
		Long: `Look into data directories, and check them: those of Platter, and those of Apache Kafka since 0.11 in
ZooKeeper or KRaft mode. No broker is asked.`,
		Example: `  platter log dump data/access-0
  platter log verify data`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(logDumpCommand(), logVerifyCommand())
	return cmd
}

func logDumpCommand() *cobra.Command {
	var o inspect.DumpOptions
	var files []string
	cmd := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Show what is in a log's files",
		Long: `Show what is in a log's files, in the manner of kafka-dump-log: record batches (.log), indexes (.index,
.timeindex, .txnindex), producer snapshots (.snapshot), leader-epoch-checkpoint, partition.metadata, and a
data directory's checkpoints. Of a directory all of these are shown, of a data directory those of its logs too.

It only reads, and works beside a running broker. The exit code is 1 when something is corrupt.`,
		Example: `  platter log dump data/access-0/00000000000000000000.log
  platter log dump data/access-0 --print-records          a line for each record
  platter log dump data/access-0 --print-data-log         keys, values and headers, too
  platter log dump data/access-0 --headers-only           quick: batch headers, no CRC
  platter log dump data --json | jq 'select(.type == "batch" and .valid == false)'
  platter log dump data/access-0 -d --from 4711 -n 1      the batch that holds offset 4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args = slices.Concat(args, files)
			if len(args) == 0 {
				return usagef("name at least one file or directory")
			}
			if o.HeadersOnly && (o.Records || o.Payload) {
				return usagef("--headers-only reads no records, so they cannot be printed")
			}
			return dumpLogs(cmd, args, o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Records, "print-records", "r", false, "a line for each record: offset, timestamp, sizes, header keys")
	f.BoolVarP(&o.Payload, "print-data-log", "d", false, "also keys, values and header values")
	f.BoolVar(&o.HeadersOnly, "headers-only", false, "read batch headers alone: quick, checks no CRC")
	f.BoolVar(&o.JSON, "json", false, "one JSON object a line")
	f.Int64Var(&o.From, "from", 0, "leave out batches that end below this `offset`")
	f.Int64VarP(&o.BatchesMax, "max-batches", "n", 0, "show at most so many `batches` of each .log file (0: all)")
	f.StringSliceVar(&files, "files", nil, "files, separated by commas: as kafka-dump-log takes them")
	f.BoolVar(&o.Records, "deep-iteration", false, "kafka-dump-log's name for --print-records")
	cmd.MarkFlagsMutuallyExclusive("print-records", "deep-iteration")
	return cmd
}

func dumpLogs(cmd *cobra.Command, paths []string, o inspect.DumpOptions) (err error) {
	fs, err := nativeDisk()
	if err != nil {
		return err
	}
	d := inspect.NewDumper(fs, cmd.OutOrStdout(), o)
	defer func() {
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
	}()
	for _, p := range paths {
		files, err := inspect.Find(fs, p)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := d.File(cmd.Context(), f); err != nil {
				return err
			}
		}
	}
	return nil
}

func logVerifyCommand() *cobra.Command {
	var shallow, quiet bool
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Check logs for corruption",
		Long: `Check data directories, or the directories of single logs: every batch's CRC and records, rising offsets,
leader epochs, indexes against the log, producer snapshots, checkpoints against the logs' ends.

It reads everything, changes nothing, and refuses a directory that a broker has open. Each finding is one line:
BAD is corruption (the exit code is 1 then), a note is unusual but legal.`,
		Example: `  platter log verify data
  platter log verify data/access-0 data/access-1
  platter log verify /var/lib/kafka --shallow      CRCs, but not the records inside`,
		Args: someArguments("a directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return verifyLogs(cmd, args, shallow, quiet) },
	}
	cmd.Flags().BoolVar(&shallow, "shallow", false, "check batches, but do not decode the records in them")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "only what is BAD: no notes, no summary")
	return cmd
}

// errFoundBad ends a verification that found corruption, which has been shown already.
var errFoundBad = errors.New("corruption was found")

func verifyLogs(cmd *cobra.Command, dirs []string, shallow, quiet bool) error {
	fs, err := nativeDisk()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	v := &inspect.Verifier{FS: fs, Shallow: shallow}
	for _, dir := range dirs {
		if err := verifyDir(cmd, v, dir, quiet); err != nil {
			return fmt.Errorf("verify %s: %w", dir, err)
		}
	}
	s := v.Summary()
	if !quiet {
		fmt.Fprintf(out, "%d logs, %d segments, %d batches, %d records, %d bytes: %d bad, %d notes\n",
			s.Logs, s.Segments, s.Batches, s.Records, s.Bytes, s.Bad, s.Notes)
	}
	if s.Bad > 0 {
		return errFoundBad
	}
	return nil
}

func verifyDir(cmd *cobra.Command, v *inspect.Verifier, dir string, quiet bool) error {
	t, err := v.Open(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	bar := client.NewProgress(cmd.ErrOrStderr(), t.Bytes, true)
	defer bar.End()
	v.Progress = bar.Add
	v.Report = func(f inspect.Finding) {
		if f.Severity == inspect.Bad || !quiet {
			fmt.Fprintln(cmd.OutOrStdout(), f)
		}
	}
	return v.Verify(cmd.Context(), t)
}

// nativeDisk is the backend that a command reads files with.
func nativeDisk() (disk.FS, error) {
	fs, _, err := backend.Select("auto")
	return fs, err
}
