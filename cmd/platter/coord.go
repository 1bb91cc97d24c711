package main

import (
	"context"
	"io"
	"net"

	"github.com/spf13/cobra"

	"platter/cmd/coord"
	"platter/coord/config"
)

// coordFlags are the command line of `platter coord`.
type coordFlags struct {
	processFlags
	listen  string
	data    string
	backend string
}

func coordCommand() *cobra.Command {
	var f coordFlags
	cmd := &cobra.Command{
		Use:   "coord",
		Short: "Run the coordinator alone, for several brokers",
		Long: `Runs the coordinator, which ZooKeeper's clients take for a standalone ZooKeeper 3.8, until it is told to stop
(Ctrl-C, SIGTERM). A broker has one inside; several brokers need one that they share: start it here, and
name it in their zookeeper.connect.

Settings are ZooKeeper's, by ZooKeeper's names ('platter settings --coord' lists them). Without any, it listens on
127.0.0.1:2181 and keeps its data in ./coordinator. It is open to other machines only when it is told so.`,
		Example: `  platter coord
  platter coord --config zoo.cfg
  platter coord --listen 10.0.0.5:2181 --data /var/lib/platter/coordinator
  platter coord --set tickTime=500 --set 4lw.commands.whitelist=*
  platter broker --zookeeper 10.0.0.5:2181      a broker that uses it`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runCoord(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.config, "config", "c", "", "zoo.cfg or zookeeper.properties to read; what flags say counts more")
	fl.StringArrayVar(&f.set, "set", nil, "one setting, name=value; may be repeated")
	fl.StringVar(&f.listen, "listen", "", "address and port to listen on (clientPortAddress:clientPort)")
	fl.StringVar(&f.data, "data", "", "data directory (dataDir)")
	fl.StringVar(&f.backend, "backend", "auto", "I/O backend: auto, uring, psync, portable")
	fl.StringVar(&f.logLevel, "log-level", "info", "least serious log lines that are written: debug, info, warn, error")
	fl.StringVar(&f.logFormat, "log-format", "text", "form of the log lines: text, json")
	return cmd
}

func runCoord(ctx context.Context, f coordFlags, stdout, stderr io.Writer) error {
	log, err := f.logger(stderr)
	if err != nil {
		return err
	}
	props, err := f.properties()
	if err != nil {
		return err
	}
	overrides, err := f.overrides()
	if err != nil {
		return err
	}
	c, warnings, err := config.LoadCoordinator(props, overrides)
	for _, w := range warnings {
		log.Warn(w)
	}
	if err != nil {
		return configError{f.config, overrides, err}
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	return coord.Run(ctx, coord.Options{Config: c, Backend: f.backend, Log: log, Out: stdout, Version: versionText()})
}

func (f coordFlags) overrides() (map[string]string, error) {
	out, err := f.settings()
	if err != nil {
		return nil, err
	}
	if f.data != "" {
		out["dataDir"] = f.data
	}
	if f.listen != "" {
		host, port, err := net.SplitHostPort(f.listen)
		if err != nil {
			return nil, usagef("--listen %s: not address:port", f.listen)
		}
		if host != "" { // a port alone stays on this machine
			out["clientPortAddress"] = host
		}
		out["clientPort"] = port
	}
	return out, nil
}
