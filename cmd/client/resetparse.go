package client

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// FileOffset is one line of a file of offsets.
type FileOffset struct {
	Topic     string
	Partition int32
	Offset    int64
}

// A file of offsets is bounded, in lines and in bytes.
const (
	offsetsFileLinesMax = 1_000_000
	offsetsFileBytesMax = 256 << 20
)

// ReadOffsetsCSV reads lines topic,partition,offset, as Kafka's tool exports them. Each partition may be
// there once.
func ReadOffsetsCSV(r io.Reader) ([]FileOffset, error) {
	cr := csv.NewReader(io.LimitReader(r, offsetsFileBytesMax))
	cr.FieldsPerRecord = -1
	cr.TrimLeadingSpace = true
	cr.ReuseRecord = true
	cr.Comment = '#'
	var out []FileOffset
	seen := map[partitionKey]bool{}
	for {
		fields, err := cr.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := cr.FieldPos(0)
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d: %d fields, not topic,partition,offset", line, len(fields))
		}
		topic := strings.Clone(strings.TrimSpace(fields[0]))
		partition, err := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 32)
		if err != nil || partition < 0 || topic == "" {
			return nil, fmt.Errorf("line %d: %q is no topic and partition", line, fields[0]+","+fields[1])
		}
		offset, err := strconv.ParseInt(strings.TrimSpace(fields[2]), 10, 64)
		if err != nil || offset < 0 {
			return nil, fmt.Errorf("line %d: %q is no offset", line, fields[2])
		}
		k := partitionKey{topic, int32(partition)}
		if seen[k] {
			return nil, fmt.Errorf("line %d: partition %d of %s was there before", line, partition, topic)
		}
		if len(out) == offsetsFileLinesMax {
			return nil, fmt.Errorf("line %d: more than %d lines", line, offsetsFileLinesMax)
		}
		seen[k] = true
		out = append(out, FileOffset{topic, int32(partition), offset})
	}
	if len(out) == 0 {
		return nil, errors.New("there is no line in it")
	}
	return out, nil
}

func writeOffsetsCSV(w io.Writer, rows []resetRow) error {
	cw := csv.NewWriter(w)
	for _, row := range rows {
		if err := cw.Write([]string{row.Topic, strconv.Itoa(int(row.Partition)), strconv.FormatInt(row.New, 10)}); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// ParseTopicPartitions reads T or T:P,P,… .
func ParseTopicPartitions(s string) (TopicPartitions, error) {
	topic, list, some := strings.Cut(s, ":")
	t := TopicPartitions{Topic: topic}
	if topic == "" {
		return t, fmt.Errorf("%q names no topic", s)
	}
	if !some {
		return t, nil
	}
	for _, text := range strings.Split(list, ",") {
		p, err := strconv.ParseInt(text, 10, 32)
		if err != nil || p < 0 {
			return t, fmt.Errorf("%q is no partition of %s", text, topic)
		}
		t.Partitions = append(t.Partitions, int32(p))
	}
	return t, nil
}

// dateTimeLayouts are ISO 8601 as Kafka's tool takes it, and with less; without a zone it is UTC. Fractions of
// seconds are accepted by all of them.
var dateTimeLayouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02",
}

// ParseDateTime reads 2026-07-01T12:00:00.000, with or without a zone (Z, +02:00); UTC without.
func ParseDateTime(s string) (time.Time, error) {
	for _, layout := range dateTimeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-07-01T12:00:00.000 (UTC) or 2026-07-01T12:00:00+02:00", s)
}

// isoDuration is ISO 8601's PnDTnHnMn.nS, and weeks.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)

// ParseAge reads a duration as ISO 8601 (P7D, PT1H30M) or as Go (36h, 1h30m).
func ParseAge(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration such as PT1H30M, P7D or 36h", s)
	if m := isoDuration.FindStringSubmatch(s); m != nil {
		var d time.Duration
		units := []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second}
		some := false
		for i, text := range m[1:] {
			if text == "" {
				continue
			}
			some = true
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || n*float64(units[i])+float64(d) > float64(1<<62) {
				return 0, bad
			}
			d += time.Duration(n * float64(units[i]))
		}
		if !some || strings.HasSuffix(s, "T") {
			return 0, bad
		}
		return d, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, bad
	}
	return d, nil
}
