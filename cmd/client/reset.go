package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// GoalKind names where a group's offsets are to be put.
type GoalKind int

// Goals; the ones with a number take it from Goal.N.
const (
	ToEarliest GoalKind = iota
	ToLatest
	ToCurrent
	ToOffset // N
	ToTime   // N, Unix time in ms
	ShiftBy  // N, from the committed offset, negative: back
	ToFile   // what Goal.File says
)

// Goal is where a group's offsets are to be put.
type Goal struct {
	Kind GoalKind
	N    int64
	File []FileOffset
}

// TopicPartitions is a topic and some of its partitions; none named: all.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// ResetOptions are a change of a group's committed offsets.
type ResetOptions struct {
	Group     string
	Topics    []TopicPartitions
	AllTopics bool // all partitions that the group has an offset for
	Goal      Goal
	Execute   bool // else only what would be done is shown
	JSON      bool
	CSV       bool // in the form that ToFile reads
}

// resetRow is one offset to be changed.
type resetRow struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Current   *int64 `json:"current_offset"`
	New       int64  `json:"new_offset"`
}

type partitionKey struct {
	topic     string
	partition int32
}

// ResetOffsets shows what a group's offsets would become, and with Execute makes them so. The result goes to
// w, remarks go to notes. A group with members is refused, as Kafka's tool does: the members would go on from
// where they are, and commit over it.
func (o Options) ResetOffsets(ctx context.Context, w, notes io.Writer, r ResetOptions) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	if err := refuseMembers(ctx, adm, r.Group); err != nil {
		return err
	}
	rows, err := r.plan(ctx, adm, notes)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: there is nothing to reset: the group has no committed offset", r.Group)
	}
	if r.Execute {
		if err := commitRows(ctx, adm, r.Group, rows); err != nil {
			return err
		}
	}
	if err := r.write(w, rows); err != nil {
		return err
	}
	if !r.Execute {
		fmt.Fprintln(notes, "dry run: nothing was changed; with --execute it is")
	}
	return nil
}

func refuseMembers(ctx context.Context, adm *kadm.Client, group string) error {
	described, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return groupError(group, err)
	}
	d := described[group]
	switch {
	case errors.Is(d.Err, kerr.GroupIDNotFound), d.Err == nil && (d.State == "Empty" || d.State == "Dead"):
		return nil // a group may be given offsets before it first consumes
	case d.Err != nil:
		return groupError(group, d.Err)
	}
	return fmt.Errorf("%s: offsets can only be reset while the group has no members; it is %s with %s",
		group, d.State, counted(int32(len(d.Members)), "member"))
}

// plan works out the new offsets, in the order of topics and partitions.
func (r *ResetOptions) plan(ctx context.Context, adm *kadm.Client, notes io.Writer) ([]resetRow, error) {
	committed, err := adm.FetchOffsets(ctx, r.Group)
	if err != nil {
		return nil, groupError(r.Group, err)
	}
	current := map[partitionKey]int64{}
	committed.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			current[partitionKey{o.Topic, o.Partition}] = o.At
		}
	})
	wanted, err := r.scope(ctx, adm, current)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	topics := map[string]bool{}
	for _, k := range wanted {
		topics[k.topic] = true
	}
	look, err := listFor(ctx, adm, r.Goal, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return nil, err
	}
	var rows []resetRow
	for _, k := range wanted {
		row := resetRow{Topic: k.topic, Partition: k.partition}
		if at, ok := current[k]; ok {
			row.Current = &at
		}
		if row.New, err = look.offset(r.Goal, k, row.Current, notes); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// scope is the partitions to change, sorted.
func (r *ResetOptions) scope(ctx context.Context, adm *kadm.Client, current map[partitionKey]int64) ([]partitionKey, error) {
	set := map[partitionKey]bool{}
	switch {
	case r.Goal.Kind == ToFile:
		for _, f := range r.Goal.File {
			set[partitionKey{f.Topic, f.Partition}] = true
		}
	case r.AllTopics:
		for k := range current {
			set[k] = true
		}
	default:
		var names []string
		for _, t := range r.Topics {
			names = append(names, t.Topic)
		}
		details, err := adm.ListTopicsWithInternal(ctx, names...)
		if err != nil {
			return nil, cause(err)
		}
		for _, t := range r.Topics {
			d := details[t.Topic]
			if d.Err != nil {
				return nil, topicError(t.Topic, d.Err, "")
			}
			partitions := t.Partitions
			if len(partitions) == 0 {
				partitions = d.Partitions.Numbers()
			}
			for _, p := range partitions {
				set[partitionKey{t.Topic, p}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b partitionKey) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	}), nil
}

// logEnds is what the leaders say of the partitions.
type logEnds struct{ starts, ends, times kadm.ListedOffsets }

func listFor(ctx context.Context, adm *kadm.Client, goal Goal, topics []string) (l logEnds, err error) {
	if l.starts, err = adm.ListStartOffsets(ctx, topics...); err != nil {
		return l, cause(err)
	}
	if l.ends, err = adm.ListEndOffsets(ctx, topics...); err != nil {
		return l, cause(err)
	}
	if goal.Kind == ToTime {
		if l.times, err = adm.ListOffsetsAfterMilli(ctx, goal.N, topics...); err != nil {
			return l, cause(err)
		}
	}
	return l, nil
}

// offset is the new offset of a partition. One outside of the log is moved to its start or end, with a note,
// as Kafka's tool does.
func (l *logEnds) offset(goal Goal, k partitionKey, current *int64, notes io.Writer) (int64, error) {
	start, err := lookup(l.starts, k.topic, k.partition)
	if err != nil {
		return 0, err
	}
	end, err := lookup(l.ends, k.topic, k.partition)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("%s [%d]", k.topic, k.partition)
	var to int64
	switch goal.Kind {
	case ToEarliest:
		return start, nil
	case ToLatest:
		return end, nil
	case ToCurrent:
		if to = end; current != nil {
			to = *current
		}
	case ToOffset:
		to = goal.N
	case ToTime:
		if to, err = lookup(l.times, k.topic, k.partition); err != nil {
			return 0, err
		}
	case ShiftBy:
		if current == nil {
			return 0, fmt.Errorf("%s: the group has no committed offset to shift", name)
		}
		to = shifted(*current, goal.N)
	case ToFile:
		i := slices.IndexFunc(goal.File, func(f FileOffset) bool { return f.Topic == k.topic && f.Partition == k.partition })
		to = goal.File[i].Offset
	}
	if at := min(max(to, start), end); at != to {
		fmt.Fprintf(notes, "%s: offset %d is out of range, from %d to %d; taking %d\n", name, to, start, end, at)
		return at, nil
	}
	return to, nil
}

// shifted adds without running over.
func shifted(at, by int64) int64 {
	if sum := at + by; by < 0 || sum >= at {
		return sum
	}
	return 1<<63 - 1
}

func commitRows(ctx context.Context, adm *kadm.Client, group string, rows []resetRow) error {
	var offsets kadm.Offsets
	for _, row := range rows {
		offsets.AddOffset(row.Topic, row.Partition, row.New, -1)
	}
	answers, err := adm.CommitOffsets(ctx, group, offsets)
	if err != nil {
		return groupError(group, err)
	}
	var errs []error
	for _, a := range answers.Sorted() {
		switch {
		case errors.Is(a.Err, kerr.UnknownMemberID), errors.Is(a.Err, kerr.IllegalGeneration):
			return fmt.Errorf("%s: a member has joined meanwhile; nothing was changed", group)
		case a.Err != nil:
			errs = append(errs, topicError(fmt.Sprintf("%s [%d]", a.Topic, a.Partition), a.Err, ""))
		}
	}
	return errors.Join(errs...)
}

func (r *ResetOptions) write(w io.Writer, rows []resetRow) error {
	switch {
	case r.JSON:
		return writeDocument(w, struct {
			Group    string     `json:"group"`
			Executed bool       `json:"executed"`
			Offsets  []resetRow `json:"offsets"`
		}{r.Group, r.Execute, rows})
	case r.CSV:
		return writeOffsetsCSV(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "TOPIC\tPARTITION\tCURRENT OFFSET\tNEW OFFSET")
	for _, row := range rows {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%d\n", row.Topic, row.Partition, dashOf(row.Current), row.New)
	}
	return tw.Flush()
}

// GoalAgo is the goal of going back to what was d ago.
func GoalAgo(now time.Time, d time.Duration) Goal {
	return Goal{Kind: ToTime, N: now.Add(-d).UnixMilli()}
}
