package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"platter/tools/killtest"
	"platter/tools/proc"
)

// TestMetrics: what an operator looks at moves when followers lag, brokers die and leaders change, and is documented.
func TestMetrics(t *testing.T) {
	coordinator := StartCoordinator(t, proc.Binary(t))
	// A session that outlives a stop of a few seconds: it is the leaders who find that the follower lags.
	c := New(t, proc.Binary(t), 3, coordinator.Addr(), map[string]string{
		"zookeeper.session.timeout.ms": "10000", "replica.lag.time.max.ms": "1000", "min.insync.replicas": "2",
		"auto.leader.rebalance.enable": "false",
	})
	c.Start()
	m := &watched{t: t, c: c}
	adm := c.Admin()
	c.Create("m", 6, 3, nil)
	c.Create("alone", 3, 1, nil)
	c.AwaitWhole(adm, "m")
	c.AwaitWhole(adm, "alone")
	m.await("one controller", func(s scrape) bool { return s.sum("kafka_controller_kafkacontroller_activecontrollercount") == 1 })
	m.await("all partitions have a leader", func(s scrape) bool {
		return s.sum("kafka_server_replicamanager_leadercount") == 9 && s.sum("kafka_server_replicamanager_partitioncount") == 21
	})
	load, err := killtest.Plan{Addr: c.Bootstrap(), Topic: "m", Partitions: 6, Producers: 1, ValueBytes: 400, PerSecond: 500}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(load.Abandon)
	m.await("records are replicated", func(s scrape) bool {
		in, out := s.sum("kafka_server_brokertopicmetrics_replicationbytesin_total"), s.sum("kafka_server_brokertopicmetrics_replicationbytesout_total")
		return in > 100_000 && out >= in && s.sum("kafka_server_fetcherstats_requests_total") > 0 && s.sum(`kafka_log_log_size{`) > 0
	})
	m.documented()

	t.Run("a follower that stands still", func(t *testing.T) {
		m.t = t
		before := m.scrape()
		controller := before.controller(t)
		id, other := (controller+1)%3, (controller+2)%3 // the controller has to change the in-sync sets
		slow := c.Brokers[id]
		slow.Signal(syscall.SIGSTOP)
		m.await("its leaders take it out", func(s scrape) bool {
			return s.sum("kafka_server_replicamanager_isrshrinks_total") > before.sum("kafka_server_replicamanager_isrshrinks_total") &&
				s.sum("kafka_server_replicamanager_underreplicatedpartitions") > 0 &&
				s.sum("kafka_server_replicamanager_atminisrpartitioncount") > before.sum("kafka_server_replicamanager_atminisrpartitioncount") &&
				s.most(fmt.Sprintf(`platter_replica_lag_records{follower="%d"}`, id)) > 0 && s.most(fmt.Sprintf(`platter_replica_lag_bytes{follower="%d"}`, id)) > 0
		}, controller, other)
		slow.Signal(syscall.SIGCONT)
		m.await("it is taken in again", func(s scrape) bool {
			return s.sum("kafka_server_replicamanager_isrexpands_total") > before.sum("kafka_server_replicamanager_isrexpands_total") &&
				s.sum("kafka_server_replicamanager_underreplicatedpartitions") == 0
		})
	})
	t.Run("brokers that die", func(t *testing.T) {
		m.t = t
		before := m.scrape()
		controller := before.controller(t)
		first, second := (controller+1)%3, (controller+2)%3
		c.Brokers[first].Kill()
		m.await("others lead", func(s scrape) bool {
			return s.sum("kafka_server_replicamanager_leadercount") == 8 &&
				s.sum("platter_controller_leaders_elected_total") > before.sum("platter_controller_leaders_elected_total") &&
				s.sum("kafka_controller_controllerstats_leaderelectionrateandtimems_count") > before.sum("kafka_controller_controllerstats_leaderelectionrateandtimems_count") &&
				s.sum("kafka_controller_controllereventmanager_eventqueueprocessingtimems_count") > before.sum("kafka_controller_controllereventmanager_eventqueueprocessingtimems_count") &&
				s.sum("kafka_controller_controllereventmanager_eventqueuetimems_count") > before.sum("kafka_controller_controllereventmanager_eventqueuetimems_count") &&
				s.sum("kafka_controller_kafkacontroller_offlinepartitionscount") == 1 &&
				s.sum("kafka_controller_kafkacontroller_preferredreplicaimbalancecount") > 0 &&
				s.sum("kafka_controller_kafkacontroller_activebrokercount") == 2
		}, controller, second)
		c.Brokers[second].Kill()
		m.await("min.insync.replicas cannot be met", func(s scrape) bool {
			return s.sum("kafka_server_replicamanager_underminisrpartitioncount") == 6 && s.sum("kafka_controller_kafkacontroller_offlinepartitionscount") == 2
		}, controller)
		c.Brokers[first].Start()
		c.Brokers[second].Start()
		c.AwaitWhole(adm, "m")
		m.await("all is well", func(s scrape) bool {
			return s.sum("kafka_server_replicamanager_underminisrpartitioncount")+s.sum("kafka_controller_kafkacontroller_offlinepartitionscount")+
				s.sum("kafka_server_replicamanager_underreplicatedpartitions")+s.sum("kafka_controller_controllerchannelmanager_totalqueuesize")+
				s.sum("kafka_server_replicafetchermanager_failedpartitionscount{") == 0 &&
				s.sum("kafka_controller_controllerstats_uncleanleaderelections_total") == 0
		})
		preferred(t, c, "m")
		m.await("the preferred leaders lead", func(s scrape) bool {
			return s.sum("kafka_controller_kafkacontroller_preferredreplicaimbalancecount") == 0
		})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := load.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

// watched is a cluster whose metrics are read.
type watched struct {
	t testing.TB
	c *Cluster
}

// broker is one broker's metrics, by name with labels.
type broker struct{ values map[string]float64 }

// scrape is some brokers' metrics at about one time.
type scrape []broker

// controller is which of them is it.
func (s scrape) controller(t testing.TB) int {
	t.Helper()
	id := slices.IndexFunc(s, func(b broker) bool { return b.values["kafka_controller_kafkacontroller_activecontrollercount"] == 1 })
	if id < 0 {
		t.Fatal("nobody is the controller")
	}
	return id
}

// sum adds up over all brokers: a name without labels, or with "{" all that begin so.
func (s scrape) sum(name string) (sum float64) {
	for _, b := range s {
		for k, v := range b.values {
			if k == name || strings.HasSuffix(name, "{") && strings.HasPrefix(k, name) {
				sum += v
			}
		}
	}
	return sum
}

// most is the largest instead.
func (s scrape) most(name string) (most float64) {
	for _, b := range s {
		for k, v := range b.values {
			if k == name || strings.HasSuffix(name, "{") && strings.HasPrefix(k, name) {
				most = max(most, v)
			}
		}
	}
	return most
}

// scrape reads the metrics of brokers, of all if none is named. One that does not answer gives none.
func (w *watched) scrape(brokers ...int) (out scrape) {
	if brokers == nil {
		brokers = []int{0, 1, 2}
	}
	for _, i := range brokers {
		values, _ := w.read(i)
		out = append(out, broker{values})
	}
	return out
}

func (w *watched) read(i int) (map[string]float64, []string) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(fmt.Sprintf("http://%s/metrics", w.c.Brokers[i].Props["metrics.listener"]))
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	return parse(resp.Body)
}

// parse gives the values by name with labels, and the names.
func parse(r io.Reader) (values map[string]float64, names []string) {
	values = map[string]float64{}
	for sc := bufio.NewScanner(r); sc.Scan(); {
		if of, ok := strings.CutPrefix(sc.Text(), "# TYPE "); ok {
			names = append(names, strings.Fields(of)[0])
			continue
		}
		at := strings.LastIndexByte(sc.Text(), ' ')
		if v, err := strconv.ParseFloat(sc.Text()[at+1:], 64); at > 0 && err == nil {
			values[sc.Text()[:at]] = v
		}
	}
	return values, names
}

// await waits until the metrics of brokers are as wanted.
func (w *watched) await(what string, want func(scrape) bool, brokers ...int) {
	w.t.Helper()
	var last scrape
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		if last = w.scrape(brokers...); want(last) {
			return
		}
	}
	var lines []string
	for i, b := range last {
		for k, v := range b.values {
			if !strings.Contains(k, "_bucket{") && (strings.Contains(k, "replica") || strings.Contains(k, "controller") || strings.Contains(k, "fetcher")) {
				lines = append(lines, fmt.Sprint(i, " ", k, " ", v))
			}
		}
	}
	slices.Sort(lines)
	w.t.Fatalf("not in 90 s: %s\n%s", what, strings.Join(lines, "\n"))
}

// documented wants every metric of the cluster's to be in the documents, and those documented for it to be there.
func (w *watched) documented() {
	w.t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		w.t.Fatal(err)
	}
	ours := regexp.MustCompile("^(kafka_|platter_(replica|controller)_)")
	inText := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:kafka|platter)_[a-z_]+)").FindAllStringSubmatch(string(text), -1) {
		inText[m[1]] = true
	}
	there := map[string]bool{}
	for i := range w.c.Brokers {
		_, names := w.read(i)
		for _, name := range names {
			there[name] = true
			if ours.MatchString(name) && !inText[name] {
				w.t.Errorf("docs/metrics.md does not explain %s", name)
			}
		}
	}
	for name := range inText {
		if !there[name] {
			w.t.Errorf("docs/metrics.md explains %s, which no broker has", name)
		}
	}
}
