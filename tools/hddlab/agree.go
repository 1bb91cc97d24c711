package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"platter/bench/disklab"
	"platter/tools/hddlab/agree"
	"platter/tools/hddlab/lab"
)

const agreeName = "agree"

func agreeCommand() *cobra.Command {
	var c lab.Config
	o := agree.Options{BudgetBytes: 1 << 30, Seed: 1}
	var on string
	asJSON := false
	cmd := &cobra.Command{Use: agreeName, Args: cobra.NoArgs, Short: "lay the model, `platter bench disk` in a lab, and fio there beside each other",
		Long: `Measure the main cells of platter bench disk three times over: on the model alone, in a lab by platter, and in the
same lab by fio, and print a table of them (Markdown). What is more than a fifth off has a star. With --on it is another
disk that platter and fio measure, without a model.`}
	configFlags(cmd, &c)
	f := cmd.Flags()
	_ = f.Set("fs", "ext4") // a value of its own table
	f.Lookup("fs").DefValue = "ext4"
	f.StringVar(&on, "on", "", "measure the disk under this directory, and not a lab")
	f.Var((*size)(&o.BudgetBytes), "budget", "of files; random positions are spread over half of it")
	f.IntVar(&o.Rounds, "rounds", 3, "of platter and fio in turn")
	f.DurationVar(&o.CellTime, "time", 2*time.Second, "of a cell of fio's")
	f.BoolVar(&asJSON, "json", false, "print all figures as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.SizeBytes == 0 {
			c.SizeBytes = 3 << 30
		}
		if o.Rounds < 1 || o.CellTime < 100*time.Millisecond {
			return errors.New("at least one round, of cells of 100ms")
		}
		if err := agree.Check(); err != nil {
			return err
		}
		o.Progress = func(what string) { fmt.Fprintf(os.Stderr, "\r\x1b[K%s", what) }
		if on != "" {
			o.Dir = on
			return showAgree(cmd.Context(), o, asJSON)
		}
		return inLab(cmd.Context(), &c, func(l *lab.Lab) error {
			o.Dir, o.Lab, o.Drive = l.Mount, l, disklab.ModelOf(c.Drive(), c.Queue(), o.BudgetBytes/2)
			return showAgree(cmd.Context(), o, asJSON)
		})
	}
	return interruptible(cmd)
}

func showAgree(ctx context.Context, o agree.Options, asJSON bool) error {
	rows, err := agree.Run(ctx, o)
	fmt.Fprint(os.Stderr, "\r\x1b[K")
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	agree.Table(os.Stdout, rows)
	return nil
}

// inLab sets a lab up, in a directory of its own unless c names one, and takes it down whatever happens.
func inLab(ctx context.Context, c *lab.Config, do func(*lab.Lab) error) (err error) {
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "hddlab-"); err != nil {
			return err
		}
		defer os.Remove(c.Dir)
	}
	if err := c.Defaults(); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	l, err := lab.Start(ctx, exe, *c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down(true)) }()
	return do(l)
}
