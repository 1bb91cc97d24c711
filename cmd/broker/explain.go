package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"platter/coord/config"
	"platter/io/backend"
	"platter/io/disk"
	"platter/net/frame"
)

// ExplainIO writes which backend does each operation in each data directory, and why. Nothing is created.
func ExplainIO(c *config.Broker, w io.Writer) error {
	name, _ := c.Value("io.backend")
	fs, reason, err := backend.Select(name)
	if err != nil {
		return err
	}
	defer closeBackend(fs)
	warning, err := setSend(c, fs)
	if err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintln(w, "warning:", warning)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "DATA DIR\tFILE SYSTEM\tOPERATION\tBACKEND\tREASON")
	for _, o := range explain(c, fs) {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", o.Dir, o.FileSystem, o.Op, o.Backend, o.Reason)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if err := readProfiles(c.List("log.dirs")).explain(c, w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s (this build has %s)\n", reason, strings.Join(backend.Built(), ", "))
	return err
}

// selectBackend takes the I/O backend, and says in the log what does what, and why.
func (b *Broker) selectBackend() error {
	name, _ := b.o.Config.Value("io.backend")
	fs, reason, err := backend.Select(name)
	if err != nil {
		return err
	}
	b.fs, b.backend = fs, reason
	if !strings.HasPrefix(reason, fs.Name()+":") {
		b.backend = fmt.Sprintf("%s (%s)", fs.Name(), reason)
	}
	b.atStop("the I/O backend", func(context.Context) error { return closeBackend(fs) })
	warning, err := setSend(b.o.Config, fs)
	if err != nil {
		return err
	}
	if warning != "" {
		b.o.Log.Warn(warning)
	}
	b.choices = explain(b.o.Config, fs)
	b.o.Log.Info("I/O backend", "backend", fs.Name(), "reason", reason)
	for _, dir := range b.o.Config.List("log.dirs") {
		b.logChoices(dir)
	}
	return nil
}

// sendOptions are io.send and its bound.
func sendOptions(c *config.Broker) disk.SendOptions {
	method, _ := c.Value("io.send")
	return disk.SendOptions{Method: disk.SendMethod(method), CopyBytesMax: c.Int64("io.send.copy.bytes.max")}
}

// setSend tells the backend how to send. One that can only copy does so, with a warning.
func setSend(c *config.Broker, fs disk.FS) (warning string, err error) {
	err = disk.SetSend(fs, sendOptions(c))
	if errors.Is(err, disk.ErrUnsupported) {
		return "io.send has no effect: " + err.Error(), nil
	}
	return "", err
}

// explain is what the backend chose, with the settings' say on sending.
func explain(c *config.Broker, fs disk.FS) []backend.Choice {
	choices := backend.Explain(fs, c.List("log.dirs"))
	o := sendOptions(c)
	if _, can := fs.(disk.SendChooser); !can || o.Method == disk.SendAuto && o.CopyBytesMax == disk.SendCopyBytesMax {
		return choices
	}
	for i := range choices {
		if choices[i].Op == backend.OpSend {
			choices[i].Reason = fmt.Sprintf("copied up to %d bytes, %s above (io.send)", o.CopyBytesMax, o.Method)
		}
	}
	return choices
}

// replyOptions are what the server needs of the same settings.
func replyOptions(c *config.Broker) frame.Options {
	if n := sendOptions(c).CopyBytesMax; n > 0 {
		return frame.Options{CopyBytesMax: n}
	}
	return frame.Options{CopyBytesMax: -1}
}

// logChoices tells of one directory: a line in all, and with the reasons a line an operation for those who
// want to know.
func (b *Broker) logChoices(dir string) {
	by := map[string][]string{}
	var fileSystem string
	for _, o := range b.choices {
		if o.Dir != dir {
			continue
		}
		fileSystem = o.FileSystem
		by[o.Backend] = append(by[o.Backend], o.Op)
		b.o.Log.Debug("I/O", "dir", dir, "operation", o.Op, "backend", o.Backend, "reason", o.Reason)
	}
	attrs := []any{"dir", dir, "filesystem", fileSystem}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		attrs = append(attrs, name, strings.Join(by[name], ", "))
	}
	b.o.Log.Info("I/O by operation; --explain-io gives the reasons", attrs...)
}

// closeBackend gives back what a backend holds, such as rings.
func closeBackend(fs disk.FS) error {
	if c, ok := fs.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
