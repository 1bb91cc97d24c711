package controller

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/coord/cluster"
	"platter/engine/store"
)

// TestTranscripts plays the scripts in testdata against the core:
//
//	brokers 1@10 2@11:rack    who is registered: id@epoch[:rack]
//	topic t 1,2 2,1           a topic with its replicas by partition
//	state t 0 leader=1 epoch=3 isr=(1,2) known=5
//	unclean t                 allows unclean election
//	offline 1 t 0             broker 1 cannot serve partition 0
//	online 1 t 0              broker 1 serves partition 0, and could not before
//	again                     brokers are asked again for what they could not serve
//	recheck 1                 broker 1 is told everything
//	leave 1                   broker 1 shuts down
//	wish t 0 broker=1 epoch=0 version=0 isr=(1,2@5)
//	                          leader 1 wants this in-sync set; 2 fetched under registration 5
//	imbalanced 10             what should be led by others, with 10 percent allowed
//	forget t                  the topic goes
//	settle                    elections, all committed, and then the pushes
//	place start=0 partitions=3 replicas=2
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := newCore()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "brokers":
				var live []cluster.Broker
				for _, a := range d.CmdArgs {
					live = append(live, parseBroker(t, a.Key))
				}
				c.setBrokers(live)
			case "topic":
				a := cluster.Assignment{ID: store.UUID{0: byte(len(c.topics) + 1)}}
				for _, r := range d.CmdArgs[1:] {
					a.Replicas = append(a.Replicas, parseIDs(t, r.Key))
				}
				c.setTopic(d.CmdArgs[0].Key, a, false)
			case "unclean":
				c.topics[d.CmdArgs[0].Key].unclean = true
				c.due[d.CmdArgs[0].Key] = true
			case "state":
				var s cluster.State
				d.ScanArgs(t, "leader", &s.Leader)
				d.ScanArgs(t, "epoch", &s.LeaderEpoch)
				for _, a := range d.CmdArgs {
					if a.Key == "isr" {
						s.ISR = parseIDs(t, strings.Join(a.Vals, ","))
					}
				}
				d.ScanArgs(t, "known", &s.Known)
				topic := c.topics[d.CmdArgs[0].Key]
				c.setState(topic, parseInt(t, d.CmdArgs[1].Key), s)
			case "offline":
				c.replicaOffline(int32(parseInt(t, d.CmdArgs[0].Key)),
					store.TP{Topic: d.CmdArgs[1].Key, Partition: int32(parseInt(t, d.CmdArgs[2].Key))})
			case "online":
				c.replicaOnline(int32(parseInt(t, d.CmdArgs[0].Key)),
					store.TP{Topic: d.CmdArgs[1].Key, Partition: int32(parseInt(t, d.CmdArgs[2].Key))})
			case "again":
				c.askAgain()
			case "recheck":
				c.recheck(int32(parseInt(t, d.CmdArgs[0].Key)))
			case "leave":
				c.leave(int32(parseInt(t, d.CmdArgs[0].Key)))
			case "wish":
				wish(t, c, d, &out)
			case "imbalanced":
				fmt.Fprintln(&out, c.imbalanced(parseInt(t, d.CmdArgs[0].Key)))
			case "forget":
				c.removeTopic(d.CmdArgs[0].Key)
			case "settle":
				settleCore(c, &out)
			case "place":
				var start, partitions, replicas int
				d.ScanArgs(t, "start", &start)
				d.ScanArgs(t, "partitions", &partitions)
				d.ScanArgs(t, "replicas", &replicas)
				all, err := c.place(c.usable(), start, partitions, replicas)
				if err != nil {
					return err.Error()
				}
				for i, r := range all {
					fmt.Fprintf(&out, "%d: %v\n", i, r)
				}
			default:
				d.Fatalf(t, "unknown command")
			}
			return out.String()
		})
	})
}

// settleCore is what the driver does with a core, the writes always succeeding.
func settleCore(c *core, out *strings.Builder) {
	for {
		changes := c.elections()
		if len(changes) == 0 {
			break
		}
		for _, ch := range changes {
			verb := "set"
			if ch.isNew {
				verb = "create"
			}
			fmt.Fprintf(out, "%s %s: leader=%d epoch=%d isr=%v", verb, ch.tp, ch.state.Leader, ch.state.LeaderEpoch, ch.state.ISR)
			if ch.state.Recovering {
				out.WriteString(" recovering")
			}
			out.WriteString("\n")
			c.commit(ch, 1, ch.state.ZkVersion+1)
		}
	}
	for _, p := range c.pushes() {
		fmt.Fprintf(out, "to %d:", p.to.ID)
		if p.lead != nil {
			out.WriteString(" lead")
			if p.lead.Full {
				out.WriteString(" full")
			}
			for _, s := range p.lead.Partitions {
				fmt.Fprintf(out, " %s", s.TP)
				if s.New {
					out.WriteString("(new)")
				}
			}
			out.WriteString(";")
		}
		out.WriteString(" update")
		if p.update.Update.Full {
			out.WriteString(" full")
		}
		for _, topic := range p.update.Update.Topics {
			if topic.Deleted {
				fmt.Fprintf(out, " %s(deleted)", topic.Name)
			}
			for i := range 10 {
				if s, ok := topic.Partitions[int32(i)]; ok {
					fmt.Fprintf(out, " %s-%d=%d", topic.Name, i, s.Leader)
					if s.OfflineReplicas != nil {
						fmt.Fprintf(out, "(offline %v)", s.OfflineReplicas)
					}
				}
			}
		}
		out.WriteString("\n")
	}
}

func parseBroker(t *testing.T, s string) cluster.Broker {
	t.Helper()
	s, rack, _ := strings.Cut(s, ":")
	id, epoch, _ := strings.Cut(s, "@")
	return cluster.Broker{ID: int32(parseInt(t, id)), Epoch: int64(parseInt(t, epoch)), Rack: rack}
}

func parseIDs(t *testing.T, s string) []int32 {
	t.Helper()
	var out []int32
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("(,)", r) }) {
		out = append(out, int32(parseInt(t, w)))
	}
	return out
}

func parseInt(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wish has a leader want another in-sync set, and commits what the controller makes of it.
func wish(t *testing.T, c *core, d *datadriven.TestData, out *strings.Builder) {
	tp := store.TP{Topic: d.CmdArgs[0].Key, Partition: int32(parseInt(t, d.CmdArgs[1].Key))}
	w := ISRChange{TP: tp, TopicID: c.topics[tp.Topic].id}
	var broker int32
	d.ScanArgs(t, "broker", &broker)
	d.ScanArgs(t, "epoch", &w.LeaderEpoch)
	d.ScanArgs(t, "version", &w.PartitionEpoch)
	for _, a := range d.CmdArgs {
		if a.Key != "isr" {
			continue
		}
		for _, v := range a.Vals {
			id, epoch, known := strings.Cut(v, "@")
			m := ISRMember{Broker: int32(parseInt(t, id)), Epoch: -1}
			if known {
				m.Epoch = int64(parseInt(t, epoch))
			}
			w.ISR = append(w.ISR, m)
		}
	}
	isr, err := c.judge(broker, &w)
	if err != nil {
		fmt.Fprintf(out, "refused: %v\n", err)
		return
	}
	s := c.partition(tp).state
	s.ISR = isr
	c.commit(change{tp: tp, state: s}, 1, s.ZkVersion+1)
	fmt.Fprintf(out, "isr=%v version=%d\n", isr, s.ZkVersion+1)
}
