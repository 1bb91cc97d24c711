package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
)

// ErrUnhealthy: partitions of the cluster are offline or under-replicated.
var ErrUnhealthy = errors.New("the cluster is not healthy")

// clusterView is a cluster as it is shown. Offline partitions have no replica that is there, leaderless ones
// nobody who leads.
type clusterView struct {
	ID              string       `json:"cluster_id"`
	Controller      int32        `json:"controller"`
	Brokers         []brokerView `json:"brokers"`
	Topics          int          `json:"topics"`
	Partitions      int          `json:"partitions"`
	Offline         []string     `json:"offline_partitions"`
	Leaderless      []string     `json:"leaderless_partitions"`
	UnderReplicated []string     `json:"under_replicated_partitions"`
	Lagging         []lagView    `json:"lagging_replicas"`
}

// lagView is a replica that is behind its leader's log end, or whose broker does not tell (-1).
type lagView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Broker    int32  `json:"broker"`
	Lag       int64  `json:"lag"`
	InSync    bool   `json:"in_sync"`
}

type brokerView struct {
	ID       int32  `json:"id"`
	Address  string `json:"address"`
	Rack     string `json:"rack,omitempty"`
	Leaders  int    `json:"leaders"`
	Replicas int    `json:"replicas"`
}

// DescribeCluster shows brokers, controller, and how the partitions are; with check, ErrUnhealthy when any
// is offline or under-replicated.
func (o Options) DescribeCluster(ctx context.Context, w io.Writer, check, asJSON bool) error {
	cl, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	m, err := kadm.NewClient(cl).Metadata(ctx)
	if err != nil {
		return cause(err)
	}
	v := clusterViewOf(m)
	v.Lagging = lagging(ctx, cl, m)
	if asJSON {
		err = writeDocument(w, v)
	} else {
		err = v.write(w)
	}
	if bad := len(v.Leaderless) + len(v.UnderReplicated); err == nil && check && bad > 0 {
		err = fmt.Errorf("%w: %d partitions have no leader, %d are under-replicated", ErrUnhealthy, len(v.Leaderless), len(v.UnderReplicated))
	}
	return err
}

func clusterViewOf(m kadm.Metadata) clusterView {
	v := clusterView{ID: m.Cluster, Controller: m.Controller, Offline: []string{}, Leaderless: []string{}, Lagging: []lagView{}, UnderReplicated: []string{}, Brokers: []brokerView{}}
	at := map[int32]int{}
	for _, b := range m.Brokers {
		at[b.NodeID] = len(v.Brokers)
		view := brokerView{ID: b.NodeID, Address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))}
		if b.Rack != nil {
			view.Rack = *b.Rack
		}
		v.Brokers = append(v.Brokers, view)
	}
	for _, t := range m.Topics.Sorted() {
		v.Topics++
		for _, p := range t.Partitions.Sorted() {
			v.Partitions++
			name := fmt.Sprintf("%s-%d", t.Topic, p.Partition)
			if p.Leader < 0 {
				v.Leaderless = append(v.Leaderless, name)
			}
			if !slices.ContainsFunc(p.Replicas, func(id int32) bool { return !slices.Contains(p.OfflineReplicas, id) }) {
				v.Offline = append(v.Offline, name)
			}
			if len(p.ISR) < len(p.Replicas) {
				v.UnderReplicated = append(v.UnderReplicated, name)
			}
			for _, id := range p.Replicas {
				if i, ok := at[id]; ok {
					v.Brokers[i].Replicas++
				}
			}
			if i, ok := at[p.Leader]; ok {
				v.Brokers[i].Leaders++
			}
		}
	}
	slices.SortFunc(v.Brokers, func(a, b brokerView) int { return int(a.ID) - int(b.ID) })
	return v
}

// shownMax bounds the partitions that are named one by one in text.
const shownMax = 20

func (v clusterView) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintf(tw, "cluster\t%s\n", v.ID)
	controller := "none"
	if v.Controller >= 0 {
		controller = fmt.Sprintf("broker %d", v.Controller)
	}
	fmt.Fprintf(tw, "controller\t%s\n", controller)
	fmt.Fprintf(tw, "topics\t%d\n", v.Topics)
	fmt.Fprintf(tw, "partitions\t%d\n", v.Partitions)
	fmt.Fprintf(tw, "offline\t%s\n", listed(v.Offline))
	fmt.Fprintf(tw, "leaderless\t%s\n", listed(v.Leaderless))
	fmt.Fprintf(tw, "under-replicated\t%s\n", listed(v.UnderReplicated))
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(tw, "BROKER\tADDRESS\tRACK\tLEADERS\tREPLICAS")
	for _, b := range v.Brokers {
		rack := b.Rack
		if rack == "" {
			rack = "-"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%d\n", b.ID, b.Address, rack, b.Leaders, b.Replicas)
	}
	if err := tw.Flush(); err != nil || len(v.Lagging) == 0 {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(tw, "LAGGING\tBROKER\tLAG\tIN SYNC")
	for _, l := range v.Lagging[:min(len(v.Lagging), shownMax)] {
		lag, inSync := "unknown", "no"
		if l.Lag >= 0 {
			lag = strconv.FormatInt(l.Lag, 10)
		}
		if l.InSync {
			inSync = "yes"
		}
		fmt.Fprintf(tw, "%s-%d\t%d\t%s\t%s\n", l.Topic, l.Partition, l.Broker, lag, inSync)
	}
	if len(v.Lagging) > shownMax {
		fmt.Fprintf(tw, "... and %d more\n", len(v.Lagging)-shownMax)
	}
	return tw.Flush()
}

// listed is a count, and the names behind it.
func listed(names []string) string {
	out := strconv.Itoa(len(names))
	for i, name := range names[:min(len(names), shownMax)] {
		if i == 0 {
			out += ":"
		}
		out += " " + name
	}
	if len(names) > shownMax {
		out += " ..."
	}
	return out
}
