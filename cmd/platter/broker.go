package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"platter/cmd/broker"
	"platter/coord/config"
)

// brokerFlags are the command line of `platter broker`.
type brokerFlags struct {
	processFlags
	listeners string
	data      []string
	zookeeper string
	backend   string
	explainIO bool
}

func brokerCommand() *cobra.Command {
	var f brokerFlags
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run a broker",
		Long: `Runs one broker until it is told to stop (Ctrl-C, SIGTERM): it then finishes what is under way and closes
its logs cleanly. A second signal ends it at once, which loses nothing that was acknowledged either.

Settings are Kafka's, by Kafka's names ('platter settings' lists them). Without any, the broker listens on
127.0.0.1:9092, keeps its data in ./data and coordinates within itself.`,
		Example: `  platter broker
  platter broker --config server.properties
  platter broker --data /disk1/platter --data /disk2/platter
  platter broker --listeners PLAINTEXT://:9092 --set advertised.listeners=PLAINTEXT://kafka1:9092
  platter broker --set log.retention.hours=24 --set num.partitions=8
  platter broker --data /disk1/platter --explain-io`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBroker(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.config, "config", "c", "", "server.properties to read; what flags say counts more")
	fl.StringArrayVar(&f.set, "set", nil, "one setting, name=value; may be repeated")
	fl.StringVar(&f.listeners, "listeners", "", "addresses to listen on (listeners)")
	fl.StringArrayVar(&f.data, "data", nil, "data directory (log.dirs); may be repeated")
	fl.StringVar(&f.zookeeper, "zookeeper", "", "ZooKeeper servers (zookeeper.connect)")
	fl.StringVar(&f.backend, "backend", "", "I/O backend (io.backend): auto, uring, psync, portable")
	fl.BoolVar(&f.explainIO, "explain-io", false, "print which I/O backend does what in each data directory, and why; then exit")
	fl.StringVar(&f.logLevel, "log-level", "info", "least serious log lines that are written: debug, info, warn, error")
	fl.StringVar(&f.logFormat, "log-format", "text", "form of the log lines: text, json")
	return cmd
}

func runBroker(ctx context.Context, f brokerFlags, stdout, stderr io.Writer) error {
	log, err := f.logger(stderr)
	if err != nil {
		return err
	}
	cfg, err := f.load(log)
	if err != nil {
		return err
	}
	if f.explainIO {
		return broker.ExplainIO(cfg, stdout)
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	return broker.Run(ctx, broker.Options{
		Config: cfg, Log: log, Out: stdout, Program: os.Args[0], Version: versionText(),
	})
}

// load reads the settings and logs what is to be warned of.
func (f brokerFlags) load(log *slog.Logger) (*config.Broker, error) {
	props, err := f.properties()
	if err != nil {
		return nil, err
	}
	overrides, err := f.overrides()
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := config.Load(props, overrides)
	for _, w := range warnings {
		log.Warn(w)
	}
	if err != nil {
		return nil, configError{f.config, overrides, err}
	}
	return cfg, nil
}

// configError is a refused configuration: a mistake of the caller's, though not in the command line, so
// --help is of no use.
type configError struct {
	file  string
	flags map[string]string // the settings that do not come from the file
	err   error
}

// Error names the file on each line that is of it.
func (e configError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	for i, l := range lines {
		name, _, _ := strings.Cut(l, " ")
		name, _, _ = strings.Cut(strings.TrimSuffix(name, ":"), "=")
		if _, flag := e.flags[name]; e.file != "" && !flag {
			lines[i] = e.file + ": " + l
		}
	}
	return strings.Join(lines, "\n")
}

func (f brokerFlags) overrides() (map[string]string, error) {
	out, err := f.settings()
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"listeners": f.listeners, "log.dirs": strings.Join(f.data, ","),
		"zookeeper.connect": f.zookeeper, "io.backend": f.backend,
	} {
		if value != "" {
			out[name] = value
		}
	}
	return out, nil
}

// sameSignal is how soon after the first signal another one is taken for the same: timeout(1), make and a
// terminal's Ctrl-C reach a process and its group, so one wish to stop may arrive twice.
const sameSignal = 500 * time.Millisecond

// untilSignal ends the context at the first SIGINT, SIGTERM or SIGHUP, and the process at the second.
func untilSignal(ctx context.Context, log *slog.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			log.Info("told to stop; once more ends the process at once", "signal", s.String())
			cancel()
		case <-ctx.Done():
			return
		}
		first := time.Now()
		s := <-signals
		for time.Since(first) < sameSignal {
			s = <-signals
		}
		log.Warn("ended at once", "signal", fmt.Sprint(s))
		os.Exit(exitFailed)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
