package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
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
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	if f.tool, err = zkcli.Open(cmd.Context(), o); err != nil {
		return err
	}
	defer f.tool.Close()
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
		if err == nil && (words[0] == "quit" || words[0] == "exit" || words[0] == "close") {
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

// runLine runs one command in the shell's session; what it is told counts for that line alone.
func (f *zkFlags) runLine(cmd *cobra.Command, words []string) error {
	line := *f
	c := zkCommands(&line)
	c.SilenceUsage, c.SilenceErrors = true, true
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
