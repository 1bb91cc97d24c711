package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/engine/store"
)

// script runs one transcript: a group, and what members say to it. Times are milliseconds; stores wait
// until the script says how they went.
type script struct {
	cfg    Config
	g      *Group
	now    int64
	made   int
	stores []*Store
	out    strings.Builder
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{cfg: Config{SessionMinMs: 6000, SessionMaxMs: 60000, SizeMax: 1000}}
		s.g = New(&s.cfg, "g", 0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			for _, line := range strings.Split(d.Input, "\n") {
				s.run(t, d, line)
			}
			return s.out.String()
		})
	})
}

// args reads name=value words; a bare word is set to "".
func args(words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		out[k] = v
	}
	return out
}

func (s *script) run(t *testing.T, d *datadriven.TestData, line string) {
	words := strings.Fields(line)
	verb := d.Cmd
	if verb == "do" && len(words) > 0 {
		verb, words = words[0], words[1:]
	}
	a := args(words)
	num := func(name string, or int64) int64 {
		if v, ok := a[name]; ok {
			var n int64
			if _, err := fmt.Sscan(v, &n); err != nil {
				d.Fatalf(t, "%s=%s", name, v)
			}
			return n
		}
		return or
	}
	who := ""
	if len(words) > 0 {
		who = words[0]
	}
	if who == "-" {
		who = ""
	}
	instance := (*string)(nil)
	if v, ok := a["instance"]; ok {
		instance = &v
	}
	if verb != "state" {
		fmt.Fprintf(&s.out, "> %s %s\n", verb, strings.Join(words, " "))
	}
	switch verb {
	case "size":
		s.cfg.SizeMax = int(num("max", 0))
	case "join":
		s.made++
		r := JoinRequest{
			To: fmt.Sprintf("join%d", s.made), MemberID: who, InstanceID: instance, NewID: a["new"],
			ClientID: "c", ClientHost: "/h", SessionTimeoutMs: int32(num("session", 10000)), RebalanceTimeoutMs: int32(num("rebalance", 20000)),
			ProtocolType: "consumer", InitialDelayMs: num("delay", 0),
		}
		if r.NewID == "" {
			r.NewID = fmt.Sprintf("m%d", s.made)
		}
		_, r.IDRequired = a["v4"]
		_, r.SkipsAssignment = a["v9"]
		if v, ok := a["type"]; ok {
			r.ProtocolType = v
		}
		protocols := a["protocols"]
		if protocols == "" {
			protocols = "range"
		}
		for _, p := range strings.Split(protocols, ",") {
			name, data, _ := strings.Cut(p, ":")
			r.Protocols = append(r.Protocols, Protocol{name, []byte(data)})
		}
		s.work(s.g.Join(s.now, &r))
	case "sync":
		s.made++
		r := SyncRequest{To: fmt.Sprintf("sync%d", s.made), MemberID: who, InstanceID: instance, Generation: int32(num("gen", int64(s.g.Generation())))}
		if v, ok := a["protocol"]; ok {
			r.Protocol = &v
		}
		if v := a["assign"]; v != "" {
			r.Assignments = map[string][]byte{}
			for _, p := range strings.Split(v, ",") {
				id, what, _ := strings.Cut(p, ":")
				r.Assignments[id] = []byte(what)
			}
		}
		s.work(s.g.Sync(s.now, &r))
	case "beat":
		fmt.Fprintln(&s.out, s.g.Heartbeat(s.now, who, instance, int32(num("gen", int64(s.g.Generation())))))
	case "leave":
		errs, w := s.g.Leave(s.now, []Leaving{{who, instance}})
		fmt.Fprintln(&s.out, errs[0])
		s.work(w)
	case "gone":
		s.work(s.g.Abandon(s.now, who))
	case "stored":
		if len(s.stores) == 0 {
			d.Fatalf(t, "nothing to store")
		}
		st := s.stores[0]
		s.stores = s.stores[1:]
		var err error
		if _, fails := a["fails"]; fails {
			err = errors.New("disk full")
		}
		s.work(s.g.Stored(s.now, st, err))
	case "wait":
		end := s.now + num("ms", 0)
		for next := s.g.NextTimer(); next != 0 && next <= end; next = s.g.NextTimer() {
			s.now = max(s.now, next)
			s.work(s.g.Tick(s.now))
		}
		s.now = end
	case "end":
		s.work(s.g.End(s.now, errors.New("moved")))
	case "suspended":
		s.now += num("ms", 0)
		s.g.Postpone(s.now, num("ms", 0))
	case "restart":
		snapshot := s.g.Snapshot()
		s.g = Restore(&s.cfg, "g", &snapshot, s.now)
	case "commit":
		tp := store.TP{Topic: a["topic"]}
		if err := s.g.CheckCommit(s.now, who, instance, int32(num("gen", -1))); err != nil {
			fmt.Fprintln(&s.out, err)
			return
		}
		s.g.Commit(tp, Offset{Offset: num("offset", 0), CommitMs: s.now, ExpireMs: num("expire", -1)})
	case "expired":
		gone := s.g.Expired(s.now, num("retention", 1000))
		slices.SortFunc(gone, func(a, b store.TP) int { return strings.Compare(a.Topic, b.Topic) })
		for _, tp := range gone {
			s.g.Forget(tp)
		}
		fmt.Fprintln(&s.out, gone, "forgettable:", s.g.Forgettable(0))
	case "delete":
		fmt.Fprintln(&s.out, s.g.CheckDeleteOffset(a["topic"]))
	case "state":
		s.state()
	default:
		d.Fatalf(t, "unknown verb %q", verb)
	}
}

func (s *script) state() {
	g := s.g
	fmt.Fprintf(&s.out, "%s generation %d", g.State(), g.Generation())
	if g.protocol != "" {
		fmt.Fprintf(&s.out, " protocol %s leader %s", g.protocol, g.leader)
	}
	fmt.Fprintln(&s.out)
	for _, m := range g.order {
		fmt.Fprintf(&s.out, "  %s", m.id)
		if m.instance != nil {
			fmt.Fprintf(&s.out, " instance %s", *m.instance)
		}
		if len(m.assignment) > 0 {
			fmt.Fprintf(&s.out, " has %s", m.assignment)
		}
		fmt.Fprintln(&s.out)
	}
	for _, id := range slices.Sorted(maps.Keys(g.pending)) {
		fmt.Fprintf(&s.out, "  pending %s\n", id)
	}
}

func (s *script) work(w Work) {
	for _, r := range w.Joined {
		fmt.Fprintf(&s.out, "%v: ", r.To)
		if r.Err != nil {
			fmt.Fprintf(&s.out, "%v (%s)\n", r.Err, r.MemberID)
			continue
		}
		fmt.Fprintf(&s.out, "%s generation %d %s leader %s", r.MemberID, r.Generation, r.Protocol, r.Leader)
		for _, m := range r.Members {
			fmt.Fprintf(&s.out, " %s:%s", m.ID, m.Metadata)
		}
		if r.SkipAssignment {
			s.out.WriteString(" skip")
		}
		fmt.Fprintln(&s.out)
	}
	for _, r := range w.Synced {
		if r.Err != nil {
			fmt.Fprintf(&s.out, "%v: %v\n", r.To, r.Err)
			continue
		}
		fmt.Fprintf(&s.out, "%v: %s %s %q\n", r.To, r.ProtocolType, r.Protocol, r.Assignment)
	}
	for _, st := range w.Stores {
		s.stores = append(s.stores, st)
		fmt.Fprintf(&s.out, "store generation %d:", st.Snapshot.Generation)
		for _, m := range st.Snapshot.Members {
			fmt.Fprintf(&s.out, " %s=%s", m.ID, m.Assignment)
		}
		fmt.Fprintln(&s.out)
	}
}
