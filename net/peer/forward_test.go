package peer

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func forward(t *testing.T, p *Pool) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, err := p.Forward(ctx, int16(kmsg.CreateTopics), 5, true, []byte("body"))
	return string(body), err
}

func TestForward(t *testing.T) {
	var from, body string
	s := serve(t, func(conn net.Conn, _ int16, id int32, client string, b []byte) error {
		from, body = client, string(b)
		return ok(conn, id)
	})
	got, err := forward(t, s.pool())
	if err != nil || got != "done" {
		t.Errorf("%q, %v", got, err)
	}
	if from != ForwardClient || body != "\x00body" {
		t.Errorf("asked as %q for %q", from, body)
	}
}

// TestOwnAnswer: with more callers than lanes each has the answer to its own request, whole, though a lane's memory is
// used again by the next. The race detector sees what else would show only now and then.
func TestOwnAnswer(t *testing.T) {
	s := serve(t, func(conn net.Conn, _ int16, id int32, _ string, body []byte) error {
		_, err := conn.Write(frame(id, body))
		return err
	})
	p := s.pool()
	var all sync.WaitGroup
	for caller := range 2 * forwardLanes {
		all.Go(func() {
			for n := range 10 {
				want := strings.Repeat(fmt.Sprintf("%d/%d ", caller, n), 200+n)
				got, err := p.Forward(t.Context(), int16(kmsg.CreateTopics), 5, true, []byte(want))
				if err != nil || string(got) != want {
					t.Errorf("caller %d, request %d: %d bytes of another answer, or %v", caller, n, len(got), err)
				}
			}
		})
	}
	all.Wait()
}

// TestLongForwards: requests that the controller takes its time for do not hold up others.
func TestLongForwards(t *testing.T) {
	const long = forwardLanes - 1
	asked, release := make(chan struct{}, long), make(chan struct{})
	s := serve(t, func(conn net.Conn, _ int16, id int32, _ string, body []byte) error {
		if strings.HasSuffix(string(body), "long") {
			asked <- struct{}{}
			<-release
		}
		return ok(conn, id)
	})
	p := s.pool()
	var all sync.WaitGroup
	for range long {
		all.Go(func() {
			if got, err := p.Forward(t.Context(), int16(kmsg.CreateTopics), 5, true, []byte("long")); err != nil || string(got) != "done" {
				t.Errorf("a long one: %q, %v", got, err)
			}
		})
	}
	for range long {
		<-asked
	}
	for range 3 {
		if got, err := forward(t, p); err != nil || got != "done" {
			t.Errorf("beside %d long ones: %q, %v", long, got, err)
		}
	}
	if n := s.connections(); n != long+1 {
		t.Errorf("%d connections for %d requests at a time", n, long+1)
	}
	close(release)
	all.Wait()
}
