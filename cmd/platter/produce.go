package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/cmd/client"
)

// produceFlags are the command line of `platter produce`; the letters are kcat's.
type produceFlags struct {
	clientFlags
	p       client.ProduceOptions
	key     string
	headers []string
	lines   string
	quiet   bool
}

func produceCommand() *cobra.Command {
	var f produceFlags
	cmd := &cobra.Command{
		Use:   "produce -t TOPIC [FILE...]",
		Short: "Send records: a line each from standard input, or a file each",
		Long: `Sends records to a topic and waits until all are acknowledged. Each line of standard input is one record
(-D sets another delimiter); with FILE arguments each file is one record.

Delimiters know \n \r \t \0 \\ and \xHH. The exit code is 0 when every record was acknowledged, else 1.`,
		Example: `  platter produce -t access < access.log
  echo 'user1:clicked' | platter produce -t clicks -K :
  platter produce -t pages -H type=html -z zstd page1.html page2.html
  printf 'a\0b\0' | platter produce -t bin -D '\0' -p 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.p.Files = args
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringVarP(&f.p.Topic, "topic", "t", "", "topic")
	fl.Int32VarP(&f.p.Partition, "partition", "p", -1, "partition; -1: by the key, without one in turn")
	fl.StringVarP(&f.p.Delimiter, "delimiter", "D", `\n`, "delimiter between records")
	fl.StringVarP(&f.p.KeyDelimiter, "key-delimiter", "K", "", "delimiter between key and value; where it is missing the key is null")
	fl.StringVarP(&f.key, "key", "k", "", "key of every record that has none in the input")
	fl.StringArrayVarP(&f.headers, "header", "H", nil, "header of every record, name=value, or name for a null value; may be repeated")
	fl.StringVarP(&f.p.Codec, "compression", "z", "none", "codec: none, gzip, snappy, lz4, zstd")
	fl.BoolVarP(&f.p.NullEmpty, "null", "Z", false, "send empty keys and values as null")
	fl.StringVarP(&f.lines, "lines", "l", "", "read delimited records from this file instead of standard input")
	fl.Int64VarP(&f.p.Count, "count", "c", 0, "stop after so many records; 0: no limit")
	fl.StringVar(&f.p.Acks, "acks", "all", "acknowledgements to wait for: 0, 1, all")
	fl.Int64Var(&f.p.TimestampMs, "timestamp", 0, "timestamp of every record, Unix time in ms; 0: now")
	fl.DurationVar(&f.p.DeliveryMax, "delivery-timeout", 2*time.Minute, "how long a record may take to be acknowledged, retries included")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress at a terminal")
	return cmd
}

func (f *produceFlags) run(cmd *cobra.Command) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := f.prepare(cmd); err != nil {
		return err
	}
	in := cmd.InOrStdin()
	if f.lines != "" && f.lines != "-" {
		file, err := os.Open(f.lines)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sent, err := o.Produce(ctx, in, f.p)
	if ctx.Err() != nil && cmd.Context().Err() == nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("%w (%d records were acknowledged)", err, sent)
	}
	return nil
}

// prepare checks the flags and turns them into what the work needs.
func (f *produceFlags) prepare(cmd *cobra.Command) (err error) {
	if f.p.Topic == "" {
		return usagef("a topic is needed: -t TOPIC")
	}
	if f.p.Partition < -1 {
		return usagef("-p %d is no partition", f.p.Partition)
	}
	if f.lines != "" && len(f.p.Files) > 0 {
		return usagef("-l and FILE arguments exclude each other: with -l each line is a record, without it each file")
	}
	if _, ok := client.Codecs[f.p.Codec]; !ok {
		return usagef("-z %s: not one of none, gzip, snappy, lz4, zstd", f.p.Codec)
	}
	if f.p.Acks != "all" && f.p.Acks != "-1" && f.p.Acks != "0" && f.p.Acks != "1" {
		return usagef("--acks %s: not one of 0, 1, all", f.p.Acks)
	}
	if f.p.Delimiter, err = unescapeFlag("-D", f.p.Delimiter); err != nil {
		return err
	}
	if f.p.Delimiter == "" {
		return usagef("-D: the delimiter is empty")
	}
	if f.p.KeyDelimiter, err = unescapeFlag("-K", f.p.KeyDelimiter); err != nil {
		return err
	}
	if cmd.Flags().Changed("key") {
		f.p.Key = []byte(f.key)
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if name == "" {
			return usagef("-H %s: not name=value", h)
		}
		header := kgo.RecordHeader{Key: name}
		if ok {
			header.Value = []byte(value)
		}
		f.p.Headers = append(f.p.Headers, header)
	}
	f.p.Progress = progressWriter(cmd.ErrOrStderr(), f.quiet)
	return nil
}

func unescapeFlag(flag, value string) (string, error) {
	s, err := client.Unescape(value)
	if err != nil {
		return "", usagef("%s: %v", flag, err)
	}
	return s, nil
}

func progressWriter(w io.Writer, quiet bool) io.Writer {
	if quiet {
		return nil
	}
	return w
}
