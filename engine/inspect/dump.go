package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
)

// ErrBad: something in what was read is corrupt; the output says what.
var ErrBad = errors.New("corrupt data")

// DumpOptions say what Dump shows. The zero value shows batches, as Kafka's tool does.
type DumpOptions struct {
	Records     bool  // also a line for each record: offset, timestamp, sizes, header keys
	Payload     bool  // also keys, values and header values; implies Records
	HeadersOnly bool  // read the batches' headers alone: quick, and no CRC is checked
	JSON        bool  // one JSON object a line
	From        int64 // leave out batches that end below this offset
	BatchesMax  int64 // stop each .log after so many batches; 0: no limit
}

// Dumper writes what files hold, as lines of text in the manner of kafka-dump-log, or as JSON.
type Dumper struct {
	fs  disk.FS
	o   DumpOptions
	out *bufio.Writer
	bad bool
}

// NewDumper writes to w; Close flushes it.
func NewDumper(fs disk.FS, w io.Writer, o DumpOptions) *Dumper {
	o.Records = o.Records || o.Payload
	return &Dumper{fs: fs, o: o, out: bufio.NewWriterSize(w, 64<<10)}
}

// Close flushes the output. ErrBad when anything that was dumped is corrupt.
func (d *Dumper) Close() error {
	if err := d.out.Flush(); err != nil {
		return err
	}
	if d.bad {
		return ErrBad
	}
	return nil
}

// File dumps one file. Corruption is shown, and remembered for Close; the error is of the disk, the output or ctx.
func (d *Dumper) File(ctx context.Context, path string) error {
	if !d.o.JSON {
		if _, err := fmt.Fprintf(d.out, "Dumping %s\n", path); err != nil {
			return err
		}
	}
	kind, offset := KindOf(filepath.Base(path))
	var err error
	switch kind {
	case Log:
		err = d.log(ctx, path, offset)
	case Index, TimeIndex, TxnIndex:
		err = d.index(path, kind, offset)
	default:
		err = d.small(path, kind)
	}
	if kind != Log && errors.Is(err, segment.ErrTorn) {
		err = errEntryTorn
	}
	var diskErr *disk.Error
	if err == nil || ctx.Err() != nil || errors.As(err, &diskErr) || errors.Is(err, errOutput) {
		return err
	}
	return d.corrupt(path, err)
}

// errEntryTorn stands for segment.ErrTorn, which speaks of batches, in an index.
var errEntryTorn = errors.New("the last entry is cut short by the end of the file")

// line is one thing that is shown.
type line interface{ text() string }

// errOutput marks an error of the writer, which is nobody's corruption.
var errOutput = errors.New("write output")

func (d *Dumper) emit(l line) error {
	var err error
	if d.o.JSON {
		var p []byte
		if p, err = json.Marshal(l); err == nil {
			_, err = d.out.Write(append(p, '\n'))
		}
	} else {
		_, err = d.out.WriteString(l.text() + "\n")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	return nil
}

func (d *Dumper) corrupt(path string, cause error) error {
	d.bad = true
	return d.emit(corruptLine{Type: "corrupt", File: path, Cause: without(path, cause)})
}

// log dumps a .log file.
func (d *Dumper) log(ctx context.Context, path string, base int64) error {
	f, size, err := open(d.fs, path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !d.o.JSON {
		fmt.Fprintf(d.out, "Log starting offset: %d\n", base) // the next error of the writer tells
	}
	n := int64(0)
	err = scanLog(f, size, d.o.HeadersOnly, func(e *entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.last() < d.o.From {
			return nil
		}
		if n++; d.o.BatchesMax > 0 && n > d.o.BatchesMax {
			return errStop
		}
		return d.entry(path, e)
	})
	var corrupt *segment.CorruptError
	if errors.As(err, &corrupt) && zeroTail(f, corrupt.Pos, size) {
		return d.emit(zerosLine{Type: "zeros", File: path, Position: corrupt.Pos, SizeBytes: size - corrupt.Pos})
	}
	return err
}

// entry shows one batch, or one entry of an old message set, and its records.
func (d *Dumper) entry(path string, e *entry) error {
	valid := true
	if !d.o.HeadersOnly || e.legacy() {
		if valid = e.checkCRC() == nil; !valid {
			d.bad = true
		}
	}
	if e.legacy() {
		if err := d.emit(newLegacyLine(path, e, valid)); err != nil || !d.o.Records || !valid {
			return err
		}
		return d.shown(path, e, batch.WalkLegacy(e.old, inflateBytesMax, func(in batch.LegacyEntry) error {
			return d.emit(d.legacyRecord(path, &in))
		}))
	}
	l := newBatchLine(path, e, valid)
	if d.o.HeadersOnly {
		l.Valid = nil
	}
	if err := d.emit(l); err != nil || !d.o.Records || d.o.HeadersOnly || !valid {
		return err
	}
	return d.shown(path, e, batch.Walk(e.b, inflateBytesMax, func(r *batch.Record) error {
		return d.emit(d.record(path, e.b, r))
	}))
}

// shown turns a batch that cannot be walked into a line of output: the batches behind it may be sound.
func (d *Dumper) shown(path string, e *entry, err error) error {
	if err == nil || errors.Is(err, errOutput) {
		return err
	}
	return d.corrupt(path, fmt.Errorf("records of the batch at %d: %w", e.pos, err))
}

// index dumps an .index, .timeindex or .txnindex.
func (d *Dumper) index(path string, kind Kind, base int64) error {
	f, size, err := open(d.fs, path)
	if err != nil {
		return err
	}
	defer f.Close()
	switch kind {
	case Index:
		return segment.ReadOffsetIndex(f, size, base, func(_ int64, e segment.OffsetEntry) error {
			return d.emit(offsetLine{Type: "index", File: path, Offset: e.Offset, Position: e.Pos})
		})
	case TimeIndex:
		return segment.ReadTimeIndex(f, size, base, func(_ int64, e segment.TimeEntry) error {
			return d.emit(timeLine{Type: "timeindex", File: path, Timestamp: e.TimestampMs, Offset: e.Offset})
		})
	}
	return readTxnIndex(f, size, func(t abortedTxn) error {
		return d.emit(txnLine{Type: "txnindex", File: path, abortedTxn: t})
	})
}

// open opens a file for reading, with its size.
func open(fs disk.FS, path string) (disk.File, int64, error) {
	f, err := fs.Open(path, disk.ReadOnly)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}
