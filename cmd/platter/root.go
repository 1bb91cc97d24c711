package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes, for scripts.
const (
	exitOK     = 0
	exitFailed = 1 // the command was understood and did not succeed
	exitUsage  = 2 // the command line or a configuration is wrong
)

// usageError is a mistake in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "platter: %v\n", err)
	var usage usageError
	var refused configError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "Try '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	case errors.As(err, &refused):
		return exitUsage
	}
	return exitFailed
}

// rootCommand puts all commands under one roof. Anything that cobra finds wrong with a command line is a
// usage error; what a command's own work returns is a failure.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "platter",
		Short: "A Kafka-compatible log broker, and the tools that go with it",
		Long: `Platter is a log broker that Kafka clients talk to: one binary, nothing to install beside it.

Start one with 'platter broker', then point any Kafka client at 127.0.0.1:9092.`,
		Example: `  platter broker                              start a broker, data in ./data
  platter topic create access -p 4            make a topic
  platter produce -t access < access.log      one record a line
  platter consume -t access -o beginning -e   all of them back`,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		brokerCommand(),
		coordCommand(),
		zkCommand(),
		topicCommand(),
		configCommand(),
		clusterCommand(),
		groupCommand(),
		produceCommand(),
		consumeCommand(),
		benchCommand(),
		logCommand(),
		settingsCommand(),
		versionCommand(),
	)
	return root
}

// noCommand refuses words that are no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s knows no command %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// noArguments refuses positional arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument: %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// someArguments asks for one positional argument or more.
func someArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
