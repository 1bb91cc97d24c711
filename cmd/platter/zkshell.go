package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"platter/cmd/zkcli"
)

// untilInterrupt is a context that ends with Ctrl-C or SIGTERM: that is how a watch is left, and no failure.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// shell reads commands, a line each, and runs them in one session. A command that fails is told of; without a
// terminal the first failure is the shell's own, after all lines were done.
func (f *zkFlags) shell(cmd *cobra.Command) error {
	cmd.SetOut(&lineWriter{w: cmd.OutOrStdout()})
	if err := f.connect(cmd.Context(), cmd); err != nil {
		return err
	}
	defer f.disconnect()
	in, out := cmd.InOrStdin(), cmd.OutOrStdout()
	prompt := func() {}
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		prompt = func() { fmt.Fprintf(out, "%s> ", f.server) }
	}
	var first error
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, dataMax)
	for prompt(); sc.Scan(); prompt() {
		words, err := splitWords(sc.Text())
		if err == nil && len(words) == 0 {
			continue
		}
		if err == nil && (words[0] == "quit" || words[0] == "exit") {
			break
		}
		if err == nil {
			err = f.runLine(cmd, words)
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "platter: %v\n", err)
			if first == nil {
				first = fmt.Errorf("a command failed: %s", strings.TrimSpace(sc.Text()))
			}
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return first
}

// lineWriter lets commands and events print, whole lines each, without getting into each other's.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// connect begins the shell's session.
func (f *zkFlags) connect(ctx context.Context, cmd *cobra.Command) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	o.Shell = true
	f.tool, err = zkcli.Open(ctx, o)
	return err
}

func (f *zkFlags) disconnect() {
	if f.tool != nil {
		f.tool.Close()
		f.tool = nil
	}
}

var errNotConnected = errors.New("not connected: 'connect' begins a new session")

// shellWords are commands that only a shell has; each gets its arguments.
var shellWords = map[string]func(*zkFlags, *cobra.Command, []string) error{
	"close": func(f *zkFlags, _ *cobra.Command, _ []string) error {
		f.disconnect()
		return nil
	},
	"connect": func(f *zkFlags, cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("connect: too much: %q", args[1:])
		}
		f.disconnect()
		if len(args) > 0 {
			f.server = args[0]
		}
		return f.connect(cmd.Context(), cmd)
	},
	"addauth": func(f *zkFlags, cmd *cobra.Command, args []string) error {
		switch {
		case len(args) != 2:
			return usagef("addauth needs a scheme and credentials: addauth digest user:password")
		case f.tool == nil:
			return errNotConnected
		}
		return f.tool.AddAuth(cmd.Context(), args[0], args[1])
	},
	"printwatches": func(f *zkFlags, cmd *cobra.Command, args []string) error {
		switch {
		case f.tool == nil:
			return errNotConnected
		case len(args) == 1 && (args[0] == "on" || args[0] == "off"):
			f.tool.PrintWatches(args[0] == "on")
			return nil
		case len(args) > 0:
			return usagef("printwatches: on or off")
		}
		state := "off"
		if f.tool.PrintsWatches() {
			state = "on"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "printwatches is %s\n", state)
		return err
	},
	"version": func(_ *zkFlags, cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "platter %s\n", versionText())
		return err
	},
}

// runLine runs one command in the shell's session; what it is told counts for that line alone.
func (f *zkFlags) runLine(cmd *cobra.Command, words []string) error {
	if do := shellWords[words[0]]; do != nil {
		return do(f, cmd, words[1:])
	}
	if f.tool == nil && words[0] != "help" {
		return errNotConnected
	}
	line := *f
	c := zkCommands(&line)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() } // without one an unknown command is none
	c.SetArgs(words)
	c.SetIn(strings.NewReader(""))
	c.SetOut(cmd.OutOrStdout())
	c.SetErr(cmd.ErrOrStderr())
	line.asJSON = f.asJSON // which making the flag has reset
	return c.ExecuteContext(cmd.Context())
}

// splitWords splits as a shell does: at blanks, but for what stands in quotes; a backslash takes the next
// character as it is.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote is not closed: %s", s)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
