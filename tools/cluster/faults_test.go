package cluster

import (
	"flag"
	"os"
	"syscall"
	"testing"
	"time"

	"platter/tools/hddlab/labtest"
	"platter/tools/proc"
)

var (
	faults = flag.Int("faults", 10, "how many faults there are")
	seed   = flag.Uint64("seed", 0, "seed of the faults and the load; 0: from the clock")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	labtest.Cleanup()
	proc.Cleanup()
	os.Exit(code)
}

// fault does one kind of harm to a broker, and ends it. pause is up to two seconds.
type fault struct {
	kind   string
	weight int
	needs  resource
	do     func(s *scene, b *proc.Broker, pause time.Duration)
}

var kinds = []fault{
	{"kill", 3, nothing, func(_ *scene, b *proc.Broker, pause time.Duration) {
		b.Kill()
		time.Sleep(pause)
		b.Launch()
	}},
	{"kill and long absence", 1, nothing, func(_ *scene, b *proc.Broker, pause time.Duration) {
		b.Kill()
		time.Sleep(SessionTimeoutMs*time.Millisecond + pause)
		b.Launch()
	}},
	{"suspend", 1, nothing, func(_ *scene, b *proc.Broker, pause time.Duration) {
		b.Signal(syscall.SIGSTOP)
		time.Sleep(2 * pause)
		b.Signal(syscall.SIGCONT)
	}},
	{"stop", 2, nothing, func(_ *scene, b *proc.Broker, pause time.Duration) {
		b.Stop()
		time.Sleep(pause / 4)
		b.Launch()
	}},
	{"kill the coordinator", 1, nothing, func(s *scene, _ *proc.Broker, pause time.Duration) {
		s.coordinator.Kill()
		time.Sleep(pause / 2)
		s.coordinator.Start()
	}},
	{"partition one way", 2, network, func(s *scene, b *proc.Broker, pause time.Duration) {
		from, to := s.host(b), s.otherHost(b)
		if s.rnd.IntN(2) == 0 {
			from, to = to, from
		}
		s.net.Cut(from, to)
		time.Sleep(3 * pause)
		s.net.Heal()
	}},
	{"partition both ways", 1, network, func(s *scene, b *proc.Broker, pause time.Duration) {
		from, to := s.host(b), s.otherHost(b)
		s.net.Cut(from, to)
		s.net.Cut(to, from)
		time.Sleep(3 * pause)
		s.net.Heal()
	}},
	{"cable pulled", 1, network, func(s *scene, b *proc.Broker, pause time.Duration) {
		s.net.Isolate(s.host(b))
		time.Sleep(3 * pause)
		s.net.Heal()
	}},
	{"clock set wrong", 1, nothing, func(s *scene, b *proc.Broker, _ time.Duration) {
		b.Signal([]syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2}[s.rnd.IntN(2)])
	}},
	{"full disk", 1, smallDisk, func(s *scene, _ *proc.Broker, pause time.Duration) {
		d := s.small[s.c.Brokers[s.rnd.IntN(len(s.small))]]
		d.Fill()
		time.Sleep(pause)
		d.Free()
	}},
	{"slow disk", 1, modelDisk, func(s *scene, _ *proc.Broker, pause time.Duration) {
		for _, disk := range s.slow {
			if err := disk.Stop(); err != nil {
				s.t.Fatal(err)
			}
			time.Sleep(pause)
			if err := disk.Resume(); err != nil {
				s.t.Fatal(err)
			}
		}
	}},
}

// TestFaultsUnderLoad does random harm to brokers, controller, coordinator, network, disks and clocks, one thing at a
// time, to brokers that do not agree what time it is,
// under idempotent producers with acks=all and consumer groups: what was acknowledged is there, once and in
// order; committed offsets never go back; and in the end all replicas are the same.
func TestFaultsUnderLoad(t *testing.T) {
	rnd := proc.Random(t, *seed)
	s := newScene(t, proc.Binary(t, "skewedclock"), rnd, nil, network, smallDisk, modelDisk)
	var course []fault // each kind as often as it weighs
	for _, f := range kinds {
		if s.missing[f.needs] != nil {
			continue
		}
		for range f.weight {
			course = append(course, f)
		}
	}
	load := s.load(300)
	groups := StartGroups(t, s.c.Bootstrap(), s.coordinator.Addr(), topic, map[string]int{"one": 1, "two": 2})
	defer groups.Stop()
	groups.AwaitWork()
	s.await(load, 100)
	counts := map[string]int{}
	for i := range *faults {
		if i%len(course) == 0 { // all kinds, however few faults there are
			rnd.Shuffle(len(course), func(i, j int) { course[i], course[j] = course[j], course[i] })
		}
		f := course[i%len(course)]
		counts[f.kind]++
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
		b := s.victim()
		f.do(s, b, time.Duration(rnd.IntN(2000))*time.Millisecond)
		if err := b.WaitReady(60 * time.Second); err != nil {
			t.Fatalf("after a fault (%s): %v\n%s", f.kind, err, b.LogTail(60))
		}
	}
	t.Logf("%d faults: %v", *faults, counts)
	s.clean(s.verdict(load, groups, true))
	for _, f := range kinds {
		if err := s.missing[f.needs]; err != nil {
			t.Run(f.kind, func(t *testing.T) { t.Skip(err) })
		}
	}
}
