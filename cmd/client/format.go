package client

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Formatter appends one record, as text, to dst.
type Formatter func(dst []byte, r *kgo.Record) []byte

// nullText is what a null key or value looks like when it is asked for (kcat's -Z).
const nullText = "NULL"

// ParseFormat reads a format in kcat's language:
//
//	%s value   %S its length (-1: null)   %R the same as 4 bytes, big-endian
//	%k key     %K its length (-1: null)   %h headers, name=value separated by commas
//	%t topic   %p partition   %o offset   %T timestamp in ms   %% a percent sign
//
// and the escapes of Unescape. With nulls a null key, value or header value is shown as NULL.
func ParseFormat(format string, nulls bool) (Formatter, error) {
	var parts []Formatter
	literal := func(s string) error {
		s, err := Unescape(s)
		if err == nil && s != "" {
			parts = append(parts, func(dst []byte, _ *kgo.Record) []byte { return append(dst, s...) })
		}
		return err
	}
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			i = len(format)
		}
		if err := literal(format[:i]); err != nil {
			return nil, err
		}
		format = format[i:]
		if format == "" {
			break
		}
		if len(format) == 1 {
			return nil, fmt.Errorf("the format ends in a single %%; %%%% is a percent sign")
		}
		part := directive(format[1], nulls)
		if part == nil {
			return nil, fmt.Errorf("%%%c is nothing that a format knows (%%s %%S %%R %%k %%K %%h %%t %%p %%o %%T %%%% are)", format[1])
		}
		parts = append(parts, part)
		format = format[2:]
	}
	return func(dst []byte, r *kgo.Record) []byte {
		for _, p := range parts {
			dst = p(dst, r)
		}
		return dst
	}, nil
}

// directive is the part of a format that a letter stands for, nil when it stands for none.
func directive(letter byte, nulls bool) Formatter {
	number := func(of func(*kgo.Record) int64) Formatter {
		return func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, of(r), 10) }
	}
	switch letter {
	case 's':
		return func(dst []byte, r *kgo.Record) []byte { return appendBytes(dst, r.Value, nulls) }
	case 'S':
		return number(func(r *kgo.Record) int64 { return length(r.Value) })
	case 'R':
		return func(dst []byte, r *kgo.Record) []byte {
			return binary.BigEndian.AppendUint32(dst, uint32(length(r.Value)))
		}
	case 'k':
		return func(dst []byte, r *kgo.Record) []byte { return appendBytes(dst, r.Key, nulls) }
	case 'K':
		return number(func(r *kgo.Record) int64 { return length(r.Key) })
	case 'h':
		return func(dst []byte, r *kgo.Record) []byte { return appendHeaders(dst, r.Headers) }
	case 't':
		return func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Topic...) }
	case 'p':
		return number(func(r *kgo.Record) int64 { return int64(r.Partition) })
	case 'o':
		return number(func(r *kgo.Record) int64 { return r.Offset })
	case 'T':
		return number(func(r *kgo.Record) int64 { return r.Timestamp.UnixMilli() })
	case '%':
		return func(dst []byte, _ *kgo.Record) []byte { return append(dst, '%') }
	}
	return nil
}

func length(p []byte) int64 {
	if p == nil {
		return -1
	}
	return int64(len(p))
}

func appendBytes(dst, p []byte, nulls bool) []byte {
	if p == nil && nulls {
		return append(dst, nullText...)
	}
	return append(dst, p...)
}

// appendHeaders writes NULL for a null value always: an empty one looks different.
func appendHeaders(dst []byte, hs []kgo.RecordHeader) []byte {
	for i, h := range hs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, h.Key...), '=')
		dst = appendBytes(dst, h.Value, true)
	}
	return dst
}

// DelimitedFormat is the format without -f: the value, the key before it when a key delimiter is given, the
// offset before all when asked for, and the delimiter behind.
func DelimitedFormat(delimiter, keyDelimiter string, offsets, nulls bool) Formatter {
	return func(dst []byte, r *kgo.Record) []byte {
		if offsets {
			dst = append(strconv.AppendInt(dst, r.Offset, 10), '\t')
		}
		if keyDelimiter != "" {
			dst = append(appendBytes(dst, r.Key, nulls), keyDelimiter...)
		}
		return append(appendBytes(dst, r.Value, nulls), delimiter...)
	}
}

// jsonRecord is a record as one JSON object. Bytes that are no UTF-8 come as base64 under another name, so
// nothing is lost.
type jsonRecord struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Offset    int64        `json:"offset"`
	TsType    string       `json:"tstype"`
	Ts        int64        `json:"ts"`
	Headers   []jsonHeader `json:"headers,omitempty"`
	Key       *string      `json:"key"`
	Key64     string       `json:"key_base64,omitempty"`
	Payload   *string      `json:"payload"`
	Payload64 string       `json:"payload_base64,omitempty"`
}

type jsonHeader struct {
	Name    string  `json:"name"`
	Value   *string `json:"value"`
	Value64 string  `json:"value_base64,omitempty"`
}

// JSONFormat is one JSON object a line.
func JSONFormat(dst []byte, r *kgo.Record) []byte {
	j := jsonRecord{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		TsType: "create", Ts: r.Timestamp.UnixMilli(),
	}
	if r.Attrs.TimestampType() == 1 {
		j.TsType = "logappend"
	}
	j.Key, j.Key64 = jsonBytes(r.Key)
	j.Payload, j.Payload64 = jsonBytes(r.Value)
	for _, h := range r.Headers {
		jh := jsonHeader{Name: h.Key}
		jh.Value, jh.Value64 = jsonBytes(h.Value)
		j.Headers = append(j.Headers, jh)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// Strings and numbers always encode; Encode ends the line.
	_ = enc.Encode(j)
	return append(dst, buf.Bytes()...)
}

func jsonBytes(p []byte) (text *string, b64 string) {
	switch {
	case p == nil:
		return nil, ""
	case !utf8.Valid(p):
		return nil, base64.StdEncoding.EncodeToString(p)
	}
	s := string(p)
	return &s, ""
}
