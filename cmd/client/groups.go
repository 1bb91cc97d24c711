package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// groupState is a group in a list.
type groupState struct {
	Group        string `json:"group"`
	State        string `json:"state"`
	ProtocolType string `json:"protocol_type"`
	Coordinator  int32  `json:"coordinator"`
}

// groupView is a group as it is shown.
type groupView struct {
	groupState
	Assignor   string        `json:"assignor"`
	Members    []groupMember `json:"members"`
	Partitions []groupOffset `json:"partitions"`
}

// groupMember is one member. Assigned is nil where members are no consumers.
type groupMember struct {
	ID         string             `json:"member_id"`
	Instance   *string            `json:"instance_id,omitempty"`
	ClientID   string             `json:"client_id"`
	Host       string             `json:"host"`
	Subscribed []string           `json:"subscribed,omitempty"`
	Assigned   map[string][]int32 `json:"assigned,omitempty"`
}

// groupOffset is where a group stands in a partition. What is null is not known: no offset was committed, or
// the partition has no leader, or is gone.
type groupOffset struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Current   *int64  `json:"current_offset"`
	End       *int64  `json:"log_end_offset"`
	Lag       *int64  `json:"lag"`
	Metadata  string  `json:"metadata,omitempty"`
	MemberID  *string `json:"member_id"`
	Host      *string `json:"host"`
	ClientID  *string `json:"client_id"`
}

// ListGroups lists groups, those in one of states when any is named.
func (o Options) ListGroups(ctx context.Context, w io.Writer, states []string, asJSON bool) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	listed, err := adm.ListGroups(ctx, states...)
	if err != nil {
		return groupError("", err)
	}
	var views []groupState
	for _, g := range listed.Sorted() {
		views = append(views, groupState{g.Group, g.State, g.ProtocolType, g.Coordinator})
	}
	if asJSON {
		return writeJSON(w, views)
	}
	if len(views) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "GROUP\tSTATE\tPROTOCOL TYPE\tCOORDINATOR")
	for _, v := range views {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\n", v.Group, v.State, dash(v.ProtocolType), v.Coordinator)
	}
	return tw.Flush()
}

// DescribeGroups shows where groups stand, and who is in them; all groups when none is named.
func (o Options) DescribeGroups(ctx context.Context, w io.Writer, members, asJSON bool, names ...string) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	if len(names) == 0 {
		listed, err := adm.ListGroups(ctx)
		if err != nil {
			return groupError("", err)
		}
		if names = listed.Groups(); len(names) == 0 {
			if asJSON {
				return writeJSON[groupView](w, nil)
			}
			return nil
		}
	}
	described, err := adm.DescribeGroups(ctx, names...)
	if err != nil {
		return groupError("", err)
	}
	var views []groupView
	var errs []error
	for _, d := range described.Sorted() {
		switch {
		case d.Err != nil:
			errs = append(errs, groupError(d.Group, d.Err))
		case d.State == "Dead":
			errs = append(errs, groupError(d.Group, kerr.GroupIDNotFound))
		default:
			views = append(views, groupViewOf(d))
		}
	}
	errs = append(errs, addCommitted(ctx, adm, views))
	switch {
	case asJSON:
		err = writeJSON(w, views)
	case members:
		err = writeMembers(w, views)
	default:
		err = writeGroups(w, views)
	}
	return errors.Join(append(errs, err)...)
}

func groupViewOf(d kadm.DescribedGroup) groupView {
	v := groupView{
		groupState: groupState{d.Group, d.State, d.ProtocolType, d.Coordinator.NodeID},
		Assignor:   d.Protocol, Members: []groupMember{}, Partitions: []groupOffset{},
	}
	for _, m := range d.Members {
		gm := groupMember{ID: m.MemberID, Instance: m.InstanceID, ClientID: m.ClientID, Host: m.ClientHost}
		if c, ok := m.Join.AsConsumer(); ok {
			gm.Subscribed = slices.Sorted(slices.Values(c.Topics))
		}
		if c, ok := m.Assigned.AsConsumer(); ok {
			gm.Assigned = map[string][]int32{}
			for _, t := range c.Topics {
				gm.Assigned[t.Topic] = slices.Sorted(slices.Values(t.Partitions))
			}
		}
		v.Members = append(v.Members, gm)
	}
	return v
}

// addCommitted fills in the partitions: those with an offset, and those that a member has.
func addCommitted(ctx context.Context, adm *kadm.Client, views []groupView) error {
	if len(views) == 0 {
		return nil
	}
	var names []string
	for _, v := range views {
		names = append(names, v.Group)
	}
	committed := adm.FetchManyOffsets(ctx, names...)
	topics := map[string]bool{}
	var errs []error
	for i := range views {
		c := committed[views[i].Group]
		if c.Err != nil {
			errs = append(errs, groupError(views[i].Group, c.Err))
			continue
		}
		views[i].Partitions = partitionsOf(&views[i], c.Fetched)
		for _, p := range views[i].Partitions {
			topics[p.Topic] = true
		}
	}
	if len(topics) == 0 {
		return errors.Join(errs...)
	}
	// A topic that is gone has no end; the rest is shown all the same.
	ends, _ := adm.ListEndOffsets(ctx, slices.Sorted(maps.Keys(topics))...)
	for i := range views {
		for j := range views[i].Partitions {
			p := &views[i].Partitions[j]
			l, ok := ends.Lookup(p.Topic, p.Partition)
			if !ok || l.Err != nil {
				continue
			}
			p.End = &l.Offset
			if p.Current != nil {
				lag := max(l.Offset-*p.Current, 0)
				p.Lag = &lag
			}
		}
	}
	return errors.Join(errs...)
}

// partitionsOf puts a group's committed offsets and its members' partitions side by side.
func partitionsOf(v *groupView, committed kadm.OffsetResponses) []groupOffset {
	type tp struct {
		topic     string
		partition int32
	}
	rows := map[tp]*groupOffset{}
	row := func(topic string, partition int32) *groupOffset {
		k := tp{topic, partition}
		if rows[k] == nil {
			rows[k] = &groupOffset{Topic: topic, Partition: partition}
		}
		return rows[k]
	}
	committed.Each(func(o kadm.OffsetResponse) {
		if o.Err != nil || o.At < 0 {
			return
		}
		r := row(o.Topic, o.Partition)
		r.Current, r.Metadata = &o.At, o.Metadata
	})
	for i := range v.Members {
		m := &v.Members[i]
		for topic, partitions := range m.Assigned {
			for _, p := range partitions {
				r := row(topic, p)
				r.MemberID, r.Host, r.ClientID = &m.ID, &m.Host, &m.ClientID
			}
		}
	}
	out := make([]groupOffset, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b groupOffset) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

func writeGroups(w io.Writer, views []groupView) error {
	for i, v := range views {
		groupHead(w, i, v)
		tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(tw, "  TOPIC\tPARTITION\tCURRENT OFFSET\tLOG END OFFSET\tLAG\tMEMBER ID\tHOST\tCLIENT ID")
		for _, p := range v.Partitions {
			fmt.Fprintf(tw, "  %s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Topic, p.Partition,
				dashOf(p.Current), dashOf(p.End), dashOf(p.Lag), dashOf(p.MemberID), dashOf(p.Host), dashOf(p.ClientID))
		}
		for _, m := range v.Members {
			if len(m.Assigned) == 0 {
				fmt.Fprintf(tw, "  -\t-\t-\t-\t-\t%s\t%s\t%s\n", m.ID, m.Host, m.ClientID)
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func writeMembers(w io.Writer, views []groupView) error {
	for i, v := range views {
		groupHead(w, i, v)
		tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(tw, "  MEMBER ID\tINSTANCE ID\tHOST\tCLIENT ID\tPARTITIONS\tASSIGNMENT")
		for _, m := range v.Members {
			count := 0
			var assigned []string
			for _, topic := range slices.Sorted(maps.Keys(m.Assigned)) {
				count += len(m.Assigned[topic])
				assigned = append(assigned, topic+":"+ints(m.Assigned[topic]))
			}
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%d\t%s\n",
				m.ID, dashOf(m.Instance), m.Host, m.ClientID, count, dash(strings.Join(assigned, " ")))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func groupHead(w io.Writer, i int, v groupView) {
	if i > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: state %s, assignor %s, %s, coordinator %d\n",
		v.Group, v.State, dash(v.Assignor), counted(int32(len(v.Members)), "member"), v.Coordinator)
}

// DeleteGroups deletes groups with their offsets, and says so on w. All are tried.
func (o Options) DeleteGroups(ctx context.Context, w io.Writer, ifExists bool, names ...string) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	answers, err := adm.DeleteGroups(ctx, names...)
	if err != nil {
		return groupError("", err)
	}
	var errs []error
	for _, a := range answers.Sorted() {
		switch {
		case a.Err == nil:
			fmt.Fprintf(w, "deleted %s\n", a.Group)
		case ifExists && errors.Is(a.Err, kerr.GroupIDNotFound):
			fmt.Fprintf(w, "%s does not exist\n", a.Group)
		default:
			errs = append(errs, groupError(a.Group, a.Err))
		}
	}
	return errors.Join(errs...)
}

// groupError says in one line what is wrong with a group; group may be "" where it is all of them.
func groupError(group string, err error) error {
	var shards *kadm.ShardErrors
	if errors.As(err, &shards) && len(shards.Errs) > 0 {
		err = shards.Errs[0].Err
	}
	var k *kerr.Error
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		err = fmt.Errorf("there is no such group (%s)", kerr.GroupIDNotFound.Message)
	case errors.Is(err, kerr.NonEmptyGroup):
		err = fmt.Errorf("the group has members; stop them first (%s)", kerr.NonEmptyGroup.Message)
	case errors.As(err, &k):
		err = fmt.Errorf("%s (%s)", strings.TrimSuffix(k.Description, "."), k.Message)
	default:
		err = cause(err)
	}
	if group == "" {
		return err
	}
	return fmt.Errorf("%s: %w", group, err)
}

// dash shows that there is nothing to show.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func dashOf[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return dash(fmt.Sprint(*v))
}
