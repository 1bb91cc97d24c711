// Hddlab sets up a modelled spinning disk that the kernel takes for a real one, and takes it down: see docs/hddlab.md and
// package lab. Linux and root only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"platter/tools/hddlab/lab"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == lab.DaemonArg {
		lab.RealTime()
		os.Exit(status(daemon(os.Args[2], os.Args[3] == "owned")))
	}
	if len(os.Args) > 1 && os.Args[1] == agreeName {
		lab.RealTime() // it measures, and with it fio: neither may wait for a processor
	}
	os.Exit(status(command().Execute()))
}

// status prints an error, and gives the exit status of the command that failed, or 1.
func status(err error) int {
	if err == nil {
		return 0
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "hddlab:", err)
	return 1
}

func daemon(text string, owned bool) error {
	var c lab.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	var owner io.Reader
	if owned {
		owner = os.Stdin
	}
	return lab.Serve(c, owner, os.Stdout)
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "hddlab", Short: "a modelled spinning disk behind a loop device", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(upCommand(), runCommand(), downCommand(), statsCommand(), agreeCommand(),
		onCommand("stop DIR", "make the disk hang: it answers no request any more", (*lab.Lab).Stop),
		onCommand("resume DIR", "let the disk go on", (*lab.Lab).Resume),
		onCommand("instant DIR", "let requests take no time, to fill the disk quickly", func(l *lab.Lab) error { return l.SetInstant(true) }),
		onCommand("modelled DIR", "let requests take the model's time again", func(l *lab.Lab) error { return l.SetInstant(false) }),
		&cobra.Command{Use: "sweep", Short: "remove labs whose owner was killed", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return lab.Sweep() }},
	)
	return root
}

// configFlags binds what a lab is made of.
func configFlags(cmd *cobra.Command, c *lab.Config) {
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "", "the lab's directory")
	f.StringVar(&c.FS, "fs", "xfs", "xfs or ext4")
	f.Var((*size)(&c.SizeBytes), "size", "of the disk: 8G, 512M; it takes memory as it fills (default 8G)")
	f.StringVar(&c.Backing, "backing", "", "keep the disk's bytes in a sparse file in this directory instead of in memory")
	f.BoolVar(&c.Buffered, "buffered", false, "let the loop device go through the page cache")
	f.Var((*size)(&c.BytesPerSec), "rate", "bytes a second (default 160 MB/s)")
	f.Var((*size)(&c.WriteCacheBytes), "write-cache", "the drive's write cache (default none)")
	f.IntVar(&c.RPM, "rpm", 7200, "turns a minute")
	f.DurationVar(&c.AverageSeek, "seek", 8500*time.Microsecond, "average seek")
}

// size is a number of bytes with K, M, G or T behind it, in powers of 1,024.
type size int64

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type is for the usage text.
func (s *size) Type() string { return "bytes" }

// Set parses.
func (s *size) Set(text string) error {
	number, unit := strings.TrimSuffix(strings.ToUpper(text), "B"), int64(1)
	if n := len(number) - 1; n >= 0 {
		if i := strings.IndexByte("KMGT", number[n]); i >= 0 {
			number, unit = number[:n], int64(1)<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(number, 10, 64)
	if err != nil || v < 0 || v > (1<<62)/unit {
		return fmt.Errorf("%q is no size", text)
	}
	*s = size(v * unit)
	return nil
}

func upCommand() *cobra.Command {
	var c lab.Config
	cmd := &cobra.Command{Use: "up --dir DIR", Short: "set a lab up and leave it; `down DIR` takes it down", Args: cobra.NoArgs}
	configFlags(cmd, &c)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		l, err := lab.Up(cmd.Context(), exe, c)
		if err != nil {
			return err
		}
		fmt.Println(l.Mount)
		return nil
	}
	return interruptible(cmd)
}

func runCommand() *cobra.Command {
	var c lab.Config
	cmd := &cobra.Command{Use: "run [flags] -- COMMAND…", Args: cobra.MinimumNArgs(1),
		Short: "run a command with a lab in $HDDLAB_DIR, and take it down whatever happens"}
	configFlags(cmd, &c)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return inLab(cmd.Context(), &c, func(l *lab.Lab) error {
			err := runIn(cmd.Context(), l, args)
			if s, statsErr := l.Stats(); statsErr == nil {
				fmt.Fprintln(os.Stderr, "hddlab:", s)
			}
			return err
		})
	}
	return interruptible(cmd)
}

// runIn runs the command. A Ctrl-C reaches it by itself, being of the same terminal; a SIGTERM is handed on.
func runIn(ctx context.Context, l *lab.Lab, args []string) error {
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	run.Env = append(os.Environ(), "HDDLAB_DIR="+l.Mount, "HDDLAB="+l.Dir)
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = 10 * time.Second
	return run.Run()
}

// interruptible ends the command's context with a signal, so that what was set up is taken down.
func interruptible(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
	return cmd
}

func downCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "down DIR", Short: "take a lab down", Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&force, "force", false, "even while its file system is in use")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := lab.Sweep(); err != nil {
			return err
		}
		l, err := lab.Open(args[0])
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return l.Down(force)
	}
	return cmd
}

func onCommand(use, short string, do func(*lab.Lab) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
		l, err := lab.Open(args[0])
		if err != nil {
			return err
		}
		return do(l)
	}}
}

func statsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "stats DIR", Short: "what the disk has done", Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := lab.Open(args[0])
		if err != nil {
			return err
		}
		s, err := l.Stats()
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(os.Stdout).Encode(s)
		}
		fmt.Println(s)
		return nil
	}
	return cmd
}
