package coordinators

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"platter/tools/proc"
)

// longSessionMs is more than a start may take: a broker that waited for its own ghost would not be ready in time.
// It is the longest that is negotiated.
const longSessionMs = 20 * proc.CoordinatorTickMs

// shortSessionMs is waited out by some tests, and yet long enough for a busy machine.
const shortSessionMs = 8 * proc.CoordinatorTickMs

var errStill = errors.New("the broker is still registered")

// TestKilled: after kill -9 the broker ends its old session, which nobody else would for longSessionMs, and
// registers anew.
func TestKilled(t *testing.T) {
	overEach(t, longSessionMs, func(t *testing.T, s *site) {
		s.Start()
		s.createTopic("t")
		s.roundTrip("t", "before")
		before := s.registered(s.zk(), 0)
		for range 3 {
			s.Kill()
			s.Start()
			after := s.registered(s.zk(), before.Czxid)
			if after.EphemeralOwner == before.EphemeralOwner {
				t.Errorf("the registration is still of session %#x", before.EphemeralOwner)
			}
			before = after
		}
		s.roundTrip("t", "after")
		if strings.Contains(s.Log(), "has to expire") || strings.Contains(s.Log(), "waiting for its end") {
			t.Error("a former session was waited for:\n" + s.LogTail(40))
		}
	})
}

// TestCoordinatorKilled: while the coordinator is away data goes on; when it is back the broker takes its session
// up again, reads what it missed, and topics can be made. The one inside: TestKilled.
func TestCoordinatorKilled(t *testing.T) {
	over(t, separate, longSessionMs, func(t *testing.T, s *site) {
		s.Start()
		s.createTopic("t")
		s.roundTrip("t", "before")
		before := s.registered(s.zk(), 0)
		s.outside.away()
		s.roundTrip("t", "meanwhile")
		s.outside.back(t)
		zk := s.zk()
		s.createTopic("later")
		s.roundTrip("later", "after")
		s.setConfig(zk, "t", "retention.ms", "123456")
		s.config("t", "retention.ms", "123456")
		if after := s.registered(zk, 0); after.EphemeralOwner != before.EphemeralOwner {
			t.Logf("the session expired on the way, and the broker registered anew")
		}
	})
}

// TestExpired: a broker that was frozen for too long has lost its session; it registers anew by itself, and reads
// what it missed.
func TestExpired(t *testing.T) {
	overEach(t, shortSessionMs, func(t *testing.T, s *site) {
		s.Start()
		s.createTopic("t")
		if s.outside == nil {
			suspendedTogether(t, s)
			return
		}
		zk := s.zk()
		before := s.registered(zk, 0)
		s.Signal(syscall.SIGSTOP)
		s.eventually("the session does not expire", func() error {
			st, err := zk.Exists(s.ctx, idPath, nil)
			if err == nil && st.Czxid == before.Czxid {
				return errStill
			}
			return nil
		})
		s.setConfig(zk, "t", "retention.ms", "123456")
		s.Signal(syscall.SIGCONT)
		s.registered(zk, before.Czxid)
		s.config("t", "retention.ms", "123456")
		s.createTopic("later")
		s.roundTrip("later", "after")
		s.roundTrip("t", "after")
	})
}

// suspendedTogether: the coordinator inside was suspended with the broker, so no time has passed for it.
func suspendedTogether(t *testing.T, s *site) {
	before := s.registered(s.zk(), 0)
	s.Signal(syscall.SIGSTOP)
	time.Sleep(2 * shortSessionMs * time.Millisecond) // of the world's time, not of theirs
	s.Signal(syscall.SIGCONT)
	s.createTopic("later")
	s.roundTrip("later", "after")
	if after := s.registered(s.zk(), 0); after.Czxid != before.Czxid {
		t.Error("a session expired while its coordinator slept")
	}
}

// TestFrozenCoordinator: one that was suspended gives the sessions of the living their full time.
func TestFrozenCoordinator(t *testing.T) {
	s := prepare(t, proc.Alone, shortSessionMs)
	s.Start()
	s.createTopic("t")
	s.roundTrip("t", "before")
	before := s.registered(s.zk(), 0)
	t.Cleanup(func() { s.outside.Signal(syscall.SIGCONT) })
	if err := s.outside.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.roundTrip("t", "meanwhile")
	time.Sleep(2 * shortSessionMs * time.Millisecond)
	if err := s.outside.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.createTopic("later")
	s.roundTrip("later", "after")
	if after := s.registered(s.zk(), 0); after.EphemeralOwner != before.EphemeralOwner {
		t.Errorf("the broker's session %#x has expired", before.EphemeralOwner)
	}
}

// TestForeign: where a broker of Apache Kafka is registered, ours does not start.
func TestForeign(t *testing.T) {
	const foreign = `{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:1"],"jmx_port":-1,"port":1,"host":"127.0.0.1","version":5,"timestamp":"1"}`
	overEach(t, longSessionMs, func(t *testing.T, s *site) {
		if s.outside == nil { // it must be there before somebody foreign can be in it
			s.Start()
		}
		zk := s.zk()
		if err := zk.Ensure(s.ctx, "/brokers/ids/7", []byte(foreign)); err != nil {
			t.Fatal(err)
		}
		if s.outside == nil {
			s.Stop()
		}
		s.Launch()
		if err := s.Wait(patience); err == nil || err.Error() == "still running" {
			t.Fatalf("it ended with %v", err)
		}
		if log := s.LogTail(5); !strings.Contains(log, "broker 7") {
			t.Errorf("the reason is not told:\n%s", log)
		}
	})
}
