package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"platter/bench/iobench"
	"platter/bench/report"
	"platter/cmd/client"
	"platter/io/disk"
	"platter/io/portable"
)

func newBenchIO() *cobra.Command {
	var o iobench.Options
	var quick bool
	var budget, jsonFile, plotDir string
	cmd := &cobra.Command{
		Use:   "io",
		Short: "Measure the I/O backends of this build against each other, on your disk",
		Long: `Measure the I/O backends of this build against each other: appends, reads from the page cache and past
it, syncs of sets, ways to send; and what auto chose against what it chose from.

Every comparison is made of neighbouring pairs of short runs (A B, B A, …), and printed as the median ratio
with its 95% interval. Files go to a directory of their own below --dir, which decides the disk, and are
removed at the end, also after Ctrl-C.`,
		Example: `  platter bench io                             two to three minutes
  platter bench io --only "cold read" --dir /mnt/raid
  platter bench io --full --json here.json --plot plots
  platter bench io compare uring.json nouring.json`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick && o.Full {
				return usagef("one of --quick and --full")
			}
			var err error
			if o.BudgetBytes, err = parseSize(budget); err != nil {
				return usagef("--budget: %v", err)
			}
			if o.BudgetBytes < ioBudgetMin {
				return usagef("--budget is at least 16MiB")
			}
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			o.Progress = progressLine(cmd.ErrOrStderr())
			res, err := iobench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if len(res.Cells) == 0 {
				return usagef("--only %q leaves nothing to measure", o.Only)
			}
			return writeIO(cmd, res, jsonFile, plotDir)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Dir, "dir", ".", "directory on the disk to measure")
	fl.BoolVar(&quick, "quick", false, "the short list of cells, two to three minutes (the default)")
	fl.BoolVar(&o.Full, "full", false, "the whole grid")
	fl.StringVar(&o.Only, "only", "", `only cells whose name contains this, such as "sends" or "append 4 KiB"`)
	fl.StringVar(&budget, "budget", "512MiB", "most that the files hold at a time")
	fl.DurationVar(&o.CellTime, "cell-time", 0, "most that one cell takes (0: 1.2s, with --full 6s; up to four times that where a claim hangs on it)")
	fl.Uint64Var(&o.Seed, "seed", 1, "of positions and of the bootstrap")
	fl.StringVar(&jsonFile, "json", "", "write the result to this file, - for standard output instead of the table")
	fl.StringVar(&plotDir, "plot", "", "draw the ratios into this directory, as PNG and SVG")
	cmd.AddCommand(newBenchIOCompare())
	return cmd
}

const ioBudgetMin = 16 << 20

// progressLine shows what is being measured, at a terminal.
func progressLine(w io.Writer) func(done, total int, name string) {
	if !client.IsTerminal(w) {
		return nil
	}
	return func(done, total int, name string) {
		if fmt.Fprint(w, "\r\x1b[K"); done < total {
			fmt.Fprintf(w, "%d of %d: %s", done+1, total, name)
		}
	}
}

func writeIO(cmd *cobra.Command, res *iobench.Result, jsonFile, plotDir string) error {
	switch jsonFile {
	case "":
	case "-":
		if err := report.JSON(cmd.OutOrStdout(), res); err != nil {
			return err
		}
	default:
		f, err := createFile(jsonFile)
		if err != nil {
			return err
		}
		if err := errors.Join(report.JSON(f, res), f.Close()); err != nil {
			return err
		}
	}
	if plotDir != "" {
		if err := portable.New().MkdirAll(plotDir); err != nil {
			return err
		}
		create := func(name string) (io.WriteCloser, error) { return createFile(filepath.Join(plotDir, name)) }
		if err := report.IOPlots(res, create); err != nil {
			return err
		}
	}
	if jsonFile == "-" {
		return nil
	}
	return report.IO(cmd.OutOrStdout(), res)
}

// outFile is a result on its way to the disk.
type outFile struct {
	disk.File
	pos int64
}

// createFile opens a file anew.
func createFile(path string) (io.WriteCloser, error) {
	f, err := portable.New().Open(path, disk.Create)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	return &outFile{File: f}, nil
}

func (o *outFile) Write(p []byte) (int, error) {
	n, err := o.WriteV([][]byte{p}, o.pos)
	o.pos += n
	return int(n), err
}

func newBenchIOCompare() *cobra.Command {
	return &cobra.Command{
		Use:     "compare FILE FILE…",
		Short:   "Lay results of bench io side by side, such as those of builds with other tags",
		Example: "  platter bench io compare uring.json nouring.json portable.json",
		Args:    someArguments("files that bench io --json wrote"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var results []*iobench.Result
			for _, name := range args {
				r, err := loadIO(name)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				results = append(results, r)
			}
			return report.Compare(cmd.OutOrStdout(), args, results)
		},
	}
}

func loadIO(name string) (*iobench.Result, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return iobench.Load(f)
}
