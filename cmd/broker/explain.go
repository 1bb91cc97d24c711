package broker

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"platter/coord/config"
	"platter/io/backend"
	"platter/io/disk"
)

// ExplainIO writes which backend does each operation in each data directory, and why. Nothing is created.
func ExplainIO(c *config.Broker, w io.Writer) error {
	name, _ := c.Value("io.backend")
	fs, reason, err := backend.Select(name)
	if err != nil {
		return err
	}
	defer closeBackend(fs)
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "DATA DIR\tFILE SYSTEM\tOPERATION\tBACKEND\tREASON")
	for _, o := range backend.Explain(fs, c.List("log.dirs")) {
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
	b.choices = backend.Explain(fs, b.o.Config.List("log.dirs"))
	b.o.Log.Info("I/O backend", "backend", fs.Name(), "reason", reason)
	for _, dir := range b.o.Config.List("log.dirs") {
		b.logChoices(dir)
	}
	return nil
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
