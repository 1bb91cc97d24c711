package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// NewTopics are topics to create, all alike. Partitions and Replicas -1: the broker's defaults.
type NewTopics struct {
	Names        []string
	Partitions   int32
	Replicas     int16
	Configs      map[string]string
	IfNotExists  bool
	ValidateOnly bool
}

// CreateTopics creates topics and says so on w. All are tried; the error is of all that failed.
func (o Options) CreateTopics(ctx context.Context, w io.Writer, n NewTopics) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	configs := map[string]*string{}
	for k, v := range n.Configs {
		configs[k] = &v
	}
	create := adm.CreateTopics
	verb := "created"
	if n.ValidateOnly {
		create, verb = adm.ValidateCreateTopics, "could be created:"
	}
	answers, err := create(ctx, n.Partitions, n.Replicas, configs, n.Names...)
	if err != nil {
		return cause(err)
	}
	var errs []error
	for _, a := range answers.Sorted() {
		switch {
		case a.Err == nil:
			fmt.Fprintf(w, "%s %s (%s, %s)\n", verb, a.Topic,
				counted(a.NumPartitions, "partition"), counted(int32(a.ReplicationFactor), "replica"))
		case n.IfNotExists && errors.Is(a.Err, kerr.TopicAlreadyExists):
			fmt.Fprintf(w, "%s exists already\n", a.Topic)
		default:
			errs = append(errs, topicError(a.Topic, a.Err, a.ErrMessage))
		}
	}
	return errors.Join(errs...)
}

// counted is a number with its noun.
func counted(n int32, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// DeleteTopics deletes topics and says so on w.
func (o Options) DeleteTopics(ctx context.Context, w io.Writer, ifExists bool, names ...string) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	answers, err := adm.DeleteTopics(ctx, names...)
	if err != nil {
		return cause(err)
	}
	var errs []error
	for _, a := range answers.Sorted() {
		switch {
		case a.Err == nil:
			fmt.Fprintf(w, "deleted %s\n", a.Topic)
		case ifExists && errors.Is(a.Err, kerr.UnknownTopicOrPartition):
			fmt.Fprintf(w, "%s does not exist\n", a.Topic)
		default:
			errs = append(errs, topicError(a.Topic, a.Err, a.ErrMessage))
		}
	}
	return errors.Join(errs...)
}

// topicError puts Kafka's error and the broker's words for it into one line.
func topicError(topic string, err error, message string) error {
	var k *kerr.Error
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("%s: there is no such topic or partition (%s)", topic, kerr.UnknownTopicOrPartition.Message)
	case message != "" && errors.As(err, &k):
		return fmt.Errorf("%s: %s (%s)", topic, message, k.Message)
	case errors.As(err, &k):
		return fmt.Errorf("%s: %s (%s)", topic, strings.TrimSuffix(k.Description, "."), k.Message)
	}
	return fmt.Errorf("%s: %w", topic, err)
}

// topicView is a topic as it is shown.
type topicView struct {
	Name       string            `json:"name"`
	ID         string            `json:"id,omitempty"`
	Internal   bool              `json:"internal,omitempty"`
	Partitions []partitionView   `json:"partitions"`
	Configs    map[string]string `json:"configs,omitempty"`
}

type partitionView struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Epoch     int32   `json:"leader_epoch"`
	Replicas  []int32 `json:"replicas"`
	ISR       []int32 `json:"isr"`
	Offline   []int32 `json:"offline,omitempty"`
	Start     *int64  `json:"start_offset,omitempty"`
	End       *int64  `json:"end_offset,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// ListTopics lists topics; internal ones only when asked for.
func (o Options) ListTopics(ctx context.Context, w io.Writer, internal, asJSON bool) error {
	details, err := o.topics(ctx, internal)
	if err != nil {
		return err
	}
	var views []topicView
	for _, d := range details.Sorted() {
		views = append(views, viewOf(d))
	}
	if asJSON {
		return writeJSON(w, views)
	}
	if len(views) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "TOPIC\tPARTITIONS\tREPLICAS")
	for _, v := range views {
		replicas := 0
		if len(v.Partitions) > 0 {
			replicas = len(v.Partitions[0].Replicas)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\n", v.Name, len(v.Partitions), replicas)
	}
	return tw.Flush()
}

// topics asks for all topics, internal ones only where they are wanted.
func (o Options) topics(ctx context.Context, internal bool) (kadm.TopicDetails, error) {
	adm, err := o.admin(ctx)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	list := adm.ListTopics
	if internal {
		list = adm.ListTopicsWithInternal
	}
	details, err := list(ctx)
	if err != nil {
		return nil, cause(err)
	}
	return details, nil
}

// ListTopicsClassic prints a line a partition as Kafka 0.8's kafka-list-topic did, its fields set off by tabs.
func (o Options) ListTopicsClassic(ctx context.Context, w io.Writer, internal bool) error {
	details, err := o.topics(ctx, internal)
	if err != nil {
		return err
	}
	for _, d := range details.Sorted() {
		for _, p := range d.Partitions.Sorted() {
			leader := "none"
			if p.Leader >= 0 {
				leader = strconv.Itoa(int(p.Leader))
			}
			_, err := fmt.Fprintf(w, "topic: %s\tpartition: %d\tleader: %s\treplicas: %s\tisr: %s\n",
				d.Topic, p.Partition, leader, ints(p.Replicas), ints(p.ISR))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// DescribeTopics shows partitions, offsets and settings of the topics named, or of all.
func (o Options) DescribeTopics(ctx context.Context, w io.Writer, asJSON bool, names ...string) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	details, err := adm.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return cause(err)
	}
	var views []topicView
	var errs []error
	for _, d := range details.Sorted() {
		if d.Err != nil {
			errs = append(errs, topicError(d.Topic, d.Err, ""))
			continue
		}
		views = append(views, viewOf(d))
	}
	addOffsets(ctx, adm, views)
	addConfigs(ctx, adm, views)
	if asJSON {
		err = writeJSON(w, views)
	} else {
		err = writeTopics(w, views)
	}
	return errors.Join(append(errs, err)...)
}

func viewOf(d kadm.TopicDetail) topicView {
	v := topicView{Name: d.Topic, Internal: d.IsInternal, Partitions: []partitionView{}}
	if d.ID != (kadm.TopicID{}) {
		v.ID = base64.RawURLEncoding.EncodeToString(d.ID[:]) // as Kafka's tools show it
	}
	for _, p := range d.Partitions.Sorted() {
		pv := partitionView{
			Partition: p.Partition, Leader: p.Leader, Epoch: p.LeaderEpoch,
			Replicas: p.Replicas, ISR: p.ISR, Offline: p.OfflineReplicas,
		}
		if p.Err != nil {
			pv.Error = p.Err.Error()
		}
		v.Partitions = append(v.Partitions, pv)
	}
	return v
}

// addOffsets fills in what the leaders know; a partition without a leader stays without.
func addOffsets(ctx context.Context, adm *kadm.Client, views []topicView) {
	names := topicNames(views)
	if len(names) == 0 {
		return
	}
	starts, _ := adm.ListStartOffsets(ctx, names...)
	ends, _ := adm.ListEndOffsets(ctx, names...)
	for i := range views {
		for j := range views[i].Partitions {
			p := &views[i].Partitions[j]
			if l, ok := starts.Lookup(views[i].Name, p.Partition); ok && l.Err == nil {
				p.Start = &l.Offset
			}
			if l, ok := ends.Lookup(views[i].Name, p.Partition); ok && l.Err == nil {
				p.End = &l.Offset
			}
		}
	}
}

// addConfigs fills in the settings that the topic itself has.
func addConfigs(ctx context.Context, adm *kadm.Client, views []topicView) {
	names := topicNames(views)
	if len(names) == 0 {
		return
	}
	answers, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return
	}
	for i := range views {
		for _, a := range answers {
			if a.Name != views[i].Name || a.Err != nil {
				continue
			}
			for _, c := range a.Configs {
				if c.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
					if views[i].Configs == nil {
						views[i].Configs = map[string]string{}
					}
					views[i].Configs[c.Key] = c.MaybeValue()
				}
			}
		}
	}
}

func topicNames(views []topicView) []string {
	var names []string
	for _, v := range views {
		names = append(names, v.Name)
	}
	return names
}

func writeTopics(w io.Writer, views []topicView) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		fmt.Fprintf(tw, "%s", v.Name)
		if v.ID != "" {
			fmt.Fprintf(tw, " (id %s)", v.ID)
		}
		fmt.Fprintln(tw)
		for _, k := range slices.Sorted(maps.Keys(v.Configs)) {
			fmt.Fprintf(tw, "  %s=%s\n", k, v.Configs[k])
		}
		fmt.Fprintln(tw, "  PARTITION\tLEADER\tEPOCH\tREPLICAS\tISR\tSTART\tEND\tRECORDS")
		for _, p := range v.Partitions {
			leader := fmt.Sprint(p.Leader)
			if p.Leader < 0 {
				leader = "none"
			}
			records := "?"
			if p.Start != nil && p.End != nil {
				records = fmt.Sprint(*p.End - *p.Start)
			}
			fmt.Fprintf(tw, "  %d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n",
				p.Partition, leader, p.Epoch, ints(p.Replicas), ints(p.ISR), offset(p.Start), offset(p.End), records)
		}
	}
	return tw.Flush()
}

func offset(o *int64) string {
	if o == nil {
		return "?"
	}
	return fmt.Sprint(*o)
}

func ints(ns []int32) string {
	var s []string
	for _, n := range ns {
		s = append(s, fmt.Sprint(n))
	}
	return strings.Join(s, ",")
}

// writeJSON writes a document; an empty list is [], not null.
func writeJSON[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	return writeDocument(w, list)
}

func writeDocument(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
