package main

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"platter/cmd/client"
)

// consumeFlags are the command line of `platter consume`; the letters are kcat's.
type consumeFlags struct {
	clientFlags
	c          client.ConsumeOptions
	partitions []int32
	offsets    []string
	format     string
	delimiter  string
	keyDelim   string
	showOffset bool
	nulls      bool
	asJSON     bool
	quiet      bool
}

func consumeCommand() *cobra.Command {
	var f consumeFlags
	cmd := &cobra.Command{
		Use:   "consume -t TOPIC",
		Short: "Write a topic's records to standard output, without a group",
		Long: `Reads a topic and writes each record's value and a newline, or what -f says. It waits for more at the end,
unless -e or -c says otherwise. Each partition's records come in order.

Where to begin (-o): beginning, end, an offset, -N (the last N records of each partition), s@T (the first
record at or after T, Unix time in ms). -o e@T stops before the first record at or after T.

A format (-f) knows %s value, %S its length, %R its length as 4 bytes, %k key, %K its length, %h headers,
%t topic, %p partition, %o offset, %T timestamp in ms, %% and \n \r \t \0 \\ \xHH. The length of null is -1.`,
		Example: `  platter consume -t access -e > access.log
  platter consume -t access -o -10 -e
  platter consume -t access -o end
  platter consume -t access -p 0 -o 1000 -c 5 -f '%p/%o %T %k: %s\n'
  platter consume -t access -e --json | jq .payload`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringVarP(&f.c.Topic, "topic", "t", "", "topic")
	fl.Int32SliceVarP(&f.partitions, "partition", "p", nil, "partitions; all when none is named")
	fl.StringArrayVarP(&f.offsets, "offset", "o", nil, "where to begin (and, with e@T, to end); default beginning")
	fl.Int64VarP(&f.c.Count, "count", "c", 0, "stop after so many records; 0: no limit")
	fl.BoolVarP(&f.c.ExitAtEnd, "exit", "e", false, "stop at the end")
	fl.StringVarP(&f.format, "format", "f", "", "format of each record")
	fl.StringVarP(&f.delimiter, "delimiter", "D", `\n`, "delimiter behind each record")
	fl.StringVarP(&f.keyDelim, "key-delimiter", "K", "", "write the key too, with this between it and the value")
	fl.BoolVarP(&f.showOffset, "offsets", "O", false, "write the offset and a tab before each record")
	fl.BoolVarP(&f.nulls, "null", "Z", false, "write null keys and values as NULL")
	fl.BoolVarP(&f.asJSON, "json", "J", false, "one JSON object a line")
	fl.BoolVarP(&f.c.Unbuffered, "unbuffered", "u", false, "write each record at once")
	fl.BoolVar(&f.c.Committed, "committed", false, "only records of committed transactions")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress at a terminal")
	return cmd
}

func (f *consumeFlags) run(cmd *cobra.Command) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := f.prepare(cmd); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.Consume(ctx, cmd.OutOrStdout(), f.c)
}

// prepare checks the flags and turns them into what the work needs.
func (f *consumeFlags) prepare(cmd *cobra.Command) (err error) {
	if f.c.Topic == "" {
		return usagef("a topic is needed: -t TOPIC")
	}
	for _, p := range f.partitions {
		// kcat's -1 is every partition.
		if p >= 0 {
			f.c.Partitions = append(f.c.Partitions, p)
		}
	}
	if f.asJSON && f.format != "" {
		return usagef("-f and --json exclude each other")
	}
	if err := f.readOffsets(); err != nil {
		return err
	}
	delimiter, err := unescapeFlag("-D", f.delimiter)
	if err != nil {
		return err
	}
	keyDelim, err := unescapeFlag("-K", f.keyDelim)
	if err != nil {
		return err
	}
	switch {
	case f.asJSON:
		f.c.Format = client.JSONFormat
	case cmd.Flags().Changed("format"):
		if f.c.Format, err = client.ParseFormat(f.format, f.nulls); err != nil {
			return usagef("-f: %v", err)
		}
	default:
		f.c.Format = client.DelimitedFormat(delimiter, keyDelim, f.showOffset, f.nulls)
	}
	// Records at a terminal and a bar at the same one would run into each other.
	if !client.IsTerminal(cmd.OutOrStdout()) {
		f.c.Progress = progressWriter(cmd.ErrOrStderr(), f.quiet)
	}
	return nil
}

func (f *consumeFlags) readOffsets() (err error) {
	begun := false
	for _, o := range f.offsets {
		if rest, ok := strings.CutPrefix(o, "e@"); ok {
			n, err := strconv.ParseInt(rest, 10, 64)
			if err != nil || n <= 0 {
				return usagef("-o %s: not e@TIME, Unix time in ms", o)
			}
			f.c.UntilMs = n
			continue
		}
		if begun {
			return usagef("-o %s: only one place to begin can be named", o)
		}
		begun = true
		if f.c.Start, err = client.ParseStart(o); err != nil {
			return usagef("-o: %v", err)
		}
	}
	return nil
}
