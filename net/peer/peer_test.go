package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
	"platter/replication/follow"
)

// server is another broker, which answers as a test wants it to.
type server struct {
	t    *testing.T
	addr *net.TCPAddr

	mu    sync.Mutex
	conns int
	// answer writes to the connection what comes of a request: its key, correlation id, client id and body.
	answer func(conn net.Conn, key int16, id int32, client string, body []byte) error
}

func serve(t *testing.T, answer func(net.Conn, int16, int32, string, []byte) error) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: l.Addr().(*net.TCPAddr), answer: answer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			all.Go(func() { s.take(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return s
}

func (s *server) take(conn net.Conn) {
	defer conn.Close()
	for {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		p := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, p); err != nil {
			return
		}
		key, id := int16(binary.BigEndian.Uint16(p)), int32(binary.BigEndian.Uint32(p[4:]))
		n := int(binary.BigEndian.Uint16(p[8:]))
		if s.answer(conn, key, id, string(p[10:10+n]), p[10+n:]) != nil {
			return
		}
	}
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// pool is broker 1's, to which the server is broker 2 and the controller.
func (s *server) pool() *Pool {
	img := cluster.NewImage("c")
	img.ControllerID = 2
	img.Brokers = []cluster.Broker{{ID: 2, Endpoints: []cluster.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: int32(s.addr.Port)}}}}
	p := New(Config{BrokerID: 1, Epoch: func() int64 { return 9 }, Listener: "PLAINTEXT", Image: func() *cluster.Image { return img }})
	s.t.Cleanup(p.Close)
	return p
}

// frame is an answer's bytes.
func frame(id int32, body []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
	return append(binary.BigEndian.AppendUint32(p, uint32(id)), body...)
}

// ok answers a request of no body of interest.
func ok(conn net.Conn, id int32) error {
	_, err := conn.Write(frame(id, append([]byte{0}, "done"...)))
	return err
}

// TestWrongAnswers: each costs its connection, and the next request has a new one.
func TestWrongAnswers(t *testing.T) {
	for name, wrong := range map[string]func(conn net.Conn, id int32) error{
		"another correlation id": func(conn net.Conn, id int32) error { return ok(conn, id+1) },
		"an end": func(net.Conn, int32) error {
			return io.EOF
		},
		"a cut": func(conn net.Conn, id int32) error {
			conn.Write(frame(id, []byte("\x00done"))[:7])
			return io.EOF
		},
		"a huge length": func(conn net.Conn, _ int32) error {
			_, err := conn.Write([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1})
			return err
		},
		"a negative length": func(conn net.Conn, _ int32) error {
			_, err := conn.Write([]byte{0xff, 0xff, 0xff, 0xff})
			return err
		},
		"a long length and an end": func(conn net.Conn, _ int32) error {
			conn.Write([]byte{0x0f, 0xff, 0xff, 0xff, 0, 0, 0, 1})
			return io.EOF
		},
		"no header": func(conn net.Conn, _ int32) error {
			_, err := conn.Write([]byte{0, 0, 0, 1, 0})
			return err
		},
		"tags without an end": func(conn net.Conn, id int32) error {
			_, err := conn.Write(frame(id, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			first := true
			s := serve(t, func(conn net.Conn, _ int16, id int32, _ string, _ []byte) error {
				mu.Lock()
				was := first
				first = false
				mu.Unlock()
				if was {
					return wrong(conn, id)
				}
				return ok(conn, id)
			})
			p := s.pool()
			_, err := forward(t, p)
			var gone *Unreachable
			if !errors.As(err, &gone) || gone.Broker != 2 {
				t.Fatalf("%v", err)
			}
			for range 2 { // on the same lane
				if got, err := forward(t, p); err != nil || got != "done" {
					t.Fatalf("afterwards: %q, %v", got, err)
				}
			}
			if n := s.connections(); n != 2 {
				t.Errorf("%d connections for one that was lost and one after it", n)
			}
		})
	}
}

// TestSlowAnswer: a request ends with its context; a lane that was given up is not used again.
func TestSlowAnswer(t *testing.T) {
	asked := make(chan struct{}, 16)
	s := serve(t, func(net.Conn, int16, int32, string, []byte) error {
		asked <- struct{}{}
		return nil
	})
	p := s.pool()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.AlterPartition(ctx, nil)
		done <- err
	}()
	<-asked
	// Who waits for the same lane is not held up for longer than it wants.
	short, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if _, err := p.ControlledShutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("behind a slow request: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a slow request: %v", err)
	}
}

// TestClosedPool: nothing is asked any more, and who waited for a turn does not open a connection.
func TestClosedPool(t *testing.T) {
	asked := make(chan struct{}, 16)
	s := serve(t, func(net.Conn, int16, int32, string, []byte) error {
		asked <- struct{}{}
		return nil
	})
	p := s.pool()
	ctx, cancel := context.WithCancel(t.Context())
	const callers = 4
	done := make(chan error, callers)
	for range callers {
		go func() {
			_, err := p.AlterPartition(ctx, nil)
			done <- err
		}()
	}
	<-asked
	cancel()
	p.Close()
	for range callers {
		if err := <-done; err == nil {
			t.Error("no error")
		}
	}
	if _, err := p.AlterPartition(t.Context(), nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	for k, l := range p.lanes {
		if l.conn != nil {
			t.Errorf("%v is open", k)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: l.Addr().(*net.TCPAddr)}
	l.Close()
	p := s.pool()
	if _, err := forward(t, p); err == nil || !strings.Contains(err.Error(), "broker 2") {
		t.Errorf("a closed port: %v", err)
	}
	if _, err := NewLeaders(p).Fetch(t.Context(), 7, 0, &follow.Request{}); !errors.Is(err, ErrNotThere) {
		t.Errorf("a broker that is not registered: %v", err)
	}
	img := cluster.NewImage("c")
	p.cfg.Image = func() *cluster.Image { return img }
	if _, err := p.AlterPartition(t.Context(), nil); !errors.Is(err, controller.ErrNotController) {
		t.Errorf("no controller: %v", err)
	}
}

// respond answers with a message of kmsg's.
func respond(conn net.Conn, id int32, version int16, resp kmsg.Response) error {
	resp.SetVersion(version)
	var p []byte
	if resp.IsFlexible() {
		p = append(p, 0)
	}
	_, err := conn.Write(frame(id, resp.AppendTo(p)))
	return err
}

// TestFetchSession: the second request names only what changed; a leader that does not know the session gets everything
// again.
func TestFetchSession(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	session, unknown := int32(77), false
	s := serve(t, func(conn net.Conn, _ int16, id int32, _ string, body []byte) error {
		req := kmsg.NewPtrFetchRequest()
		req.Version = fetchVersion
		if err := req.ReadFrom(body[1:]); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		what := strconv.Itoa(int(req.SessionID)) + "/" + strconv.Itoa(int(req.SessionEpoch)) + ":"
		resp := kmsg.NewPtrFetchResponse()
		resp.SessionID = session
		for _, topic := range req.Topics {
			rt := kmsg.NewFetchResponseTopic()
			rt.TopicID = topic.TopicID
			for _, q := range topic.Partitions {
				what += " " + strconv.Itoa(int(q.Partition)) + "@" + strconv.Itoa(int(q.FetchOffset))
				rp := kmsg.NewFetchResponseTopicPartition()
				rp.Partition, rp.HighWatermark = q.Partition, q.FetchOffset
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		for _, topic := range req.ForgottenTopics {
			what += " without " + strconv.Itoa(int(topic.Partitions[0]))
		}
		if asked = append(asked, what); unknown && req.SessionID != 0 {
			resp.ErrorCode, resp.Topics = sessionNotFound, nil
		}
		return respond(conn, id, fetchVersion, resp)
	})
	leaders := NewLeaders(s.pool())
	wanted := func(n int32, offset int64) follow.Wanted {
		w := follow.Wanted{TP: store.TP{Topic: "t", Partition: n}, TopicID: store.UUID{1}, MaxBytes: 1}
		w.At.Offset = offset
		return w
	}
	fetch := func(changed []int, ws ...follow.Wanted) string {
		t.Helper()
		given, err := leaders.Fetch(t.Context(), 2, 0, &follow.Request{Partitions: ws, Changed: changed})
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, g := range given {
			out += fmt.Sprintf(" %d:%d", g.Place, g.HighWatermark)
		}
		return out
	}
	var empty follow.Wanted
	for _, step := range []struct {
		do   func() string
		want string
	}{
		{func() string { return fetch([]int{0, 1}, wanted(0, 5), wanted(1, 6)) }, " 0:5 1:6"},
		{func() string { return fetch([]int{1}, wanted(0, 5), wanted(1, 7)) }, " 1:7"},
		{func() string { return fetch([]int{0}, empty, wanted(1, 7)) }, ""},
		{func() string { return fetch([]int{0, 1}, wanted(1, 7), wanted(2, 4)) }, " 0:7 1:4"}, // it has moved to another place
		{func() string { return fetch([]int{0, 1}, empty, wanted(1, 8)) }, " 1:8"},
		{func() string { mu.Lock(); unknown = true; mu.Unlock(); return fetch(nil, empty, wanted(1, 8)) }, " 1:8"},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("given%s, want%s", got, step.want)
		}
	}
	const want = "0/0: 0@5 1@6|77/1: 1@7|77/2: without 0|77/3: 1@7 2@4|77/4: 1@8 without 2|77/5:|0/0: 1@8"
	if got := strings.Join(asked, "|"); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
}

// FuzzAnswer: an answer is read within its bounds, whatever it says of itself.
func FuzzAnswer(f *testing.F) {
	f.Add(frame(1, []byte("\x00done")), true)
	f.Add(frame(1, []byte{2, 0, 1, 'x', 5, 0}), true)
	f.Add(frame(1, nil), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0}, true)
	f.Add(frame(1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), true)
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = fetchVersion
	f.Add(frame(1, resp.AppendTo([]byte{0})), true)
	f.Fuzz(func(t *testing.T, p []byte, flexible bool) {
		buf, err := readFrame(strings.NewReader(string(p)), nil)
		if err != nil {
			return
		}
		if len(buf) > len(p) {
			t.Fatalf("%d bytes from %d", len(buf), len(p))
		}
		body, err := answerBody(buf, 1, flexible)
		if err != nil {
			return
		}
		for _, r := range []kmsg.Response{kmsg.NewPtrFetchResponse(), kmsg.NewPtrAlterPartitionResponse(), kmsg.NewPtrLeaderAndISRResponse()} {
			r.SetVersion(r.MaxVersion())
			if r.ReadFrom(body) != nil {
				continue
			}
			switch r := r.(type) {
			case *kmsg.FetchResponse:
				s := &session{}
				s.request(kmsg.NewPtrFetchRequest(), &follow.Request{Partitions: []follow.Wanted{{TP: store.TP{Topic: "t"}}}})
				_, _ = s.answer(r)
			case *kmsg.AlterPartitionResponse:
				isrAnswers([]controller.ISRChange{{}}, r)
			}
		}
	})
}
