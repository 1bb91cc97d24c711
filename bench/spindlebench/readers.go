package spindlebench

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/net/frame"
)

// pair is both ends of a connection over loopback.
func pair() (client, server net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if server, err = l.Accept(); err != nil {
		client.Close()
	}
	return client, server, err
}

// reading is readers that fetch logs to their ends, as fast as they are served.
type reading struct {
	ctx     context.Context
	readers [][]*commitlog.Log
	taken   []atomic.Int64
	counted []int64 // what each had taken after took: when all had come to their ends, or the time was up
	took    time.Duration
}

// run returns when all logs are read, or the time is up and each reader has the answer that it waited for.
func (r *reading) run() error {
	r.taken = make([]atomic.Int64, len(r.readers))
	errs := make([]error, len(r.readers))
	began := time.Now()
	var wg sync.WaitGroup
	for i, logs := range r.readers {
		wg.Go(func() { errs[i] = r.one(&r.taken[i], logs) })
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	select {
	case <-over:
	case <-r.ctx.Done():
	}
	r.took = time.Since(began)
	for i := range r.taken {
		r.counted = append(r.counted, r.taken[i].Load())
	}
	<-over
	return errors.Join(errs...)
}

func (r *reading) one(taken *atomic.Int64, logs []*commitlog.Log) error {
	client, server, err := pair()
	if err != nil {
		return err
	}
	var drained sync.WaitGroup
	drained.Go(func() { io.Copy(io.Discard, client) })
	defer func() {
		server.Close()
		drained.Wait()
		client.Close()
	}()
	for _, l := range logs {
		for offset := int64(0); ; {
			n, next, err := fetchTo(server, l, offset)
			if err != nil {
				return err
			}
			taken.Add(n)
			if r.ctx.Err() != nil {
				return nil
			}
			if n == 0 {
				break
			}
			offset = next
		}
	}
	return nil
}

// fetchTo serves one fetch as the broker does.
func fetchTo(c net.Conn, l *commitlog.Log, offset int64) (n, next int64, err error) {
	rd, err := l.Read(offset, fetchBytes, math.MaxInt64, true)
	if err != nil || rd.SizeBytes == 0 {
		return 0, offset, err
	}
	reply := frame.New()
	reply.OnRelease(rd.Release)
	defer reply.Release()
	for _, g := range rd.Ranges {
		reply.Range(g)
	}
	return rd.SizeBytes, rd.NextOffset, reply.Send(c, frame.Options{})
}

func (r *reading) rate() float64 {
	n := int64(0)
	for _, taken := range r.counted {
		n += taken
	}
	return float64(n) / r.took.Seconds()
}

func (r *reading) least() int64 { return slices.Min(r.counted) }

func (r *reading) most() int64 { return slices.Max(r.counted) }

// liveTail is an appender at a rate, and a reader at its heels over a connection.
type liveTail struct {
	appends, reads []time.Duration

	log    *commitlog.Log
	ctx    context.Context
	news   chan struct{}
	mu     sync.Mutex
	due    []mark // appends whose reader does not have them yet
	errs   chan error
	groups sync.WaitGroup
}

// mark is when an append was due, and where in the stream of bytes it ends.
type mark struct {
	at  time.Time
	end int64
}

// startTail appends batches at a rate until ctx ends. Times count from when an append was due, so that one that is held up holds
// up those behind it in the figures, too.
func startTail(ctx context.Context, l *commitlog.Log, bytesPerSec, batchBytes int64) (*liveTail, error) {
	client, server, err := pair()
	if err != nil {
		return nil, err
	}
	t := &liveTail{log: l, ctx: ctx, news: make(chan struct{}, 1), errs: make(chan error, 3)}
	b, err := makeBatch(batchBytes)
	if err != nil {
		return nil, err
	}
	offset := l.Ends().Written
	every := time.Duration(float64(len(b)) / float64(bytesPerSec) * float64(time.Second))
	sent := make(chan struct{})
	t.groups.Go(func() { t.append(b, every); close(sent) })
	t.groups.Go(func() {
		defer server.Close()
		t.serve(server, offset, sent)
	})
	t.groups.Go(func() {
		defer client.Close()
		t.receive(client)
	})
	return t, nil
}

// wait ends with the appender.
func (t *liveTail) wait() error {
	t.groups.Wait()
	select {
	case err := <-t.errs:
		return err
	default:
		return nil
	}
}

func (t *liveTail) append(b batch.Batch, every time.Duration) {
	next, end := time.Now(), int64(0)
	for {
		if d := time.Until(next); d > 0 {
			time.Sleep(d)
		}
		end += int64(len(b))
		t.mu.Lock()
		t.due = append(t.due, mark{next, end})
		t.mu.Unlock()
		if err := appendNow(t.log, b); err != nil {
			t.errs <- err
			return
		}
		t.appends = append(t.appends, time.Since(next))
		next = next.Add(every)
		select {
		case t.news <- struct{}{}:
		default:
		}
		if t.ctx.Err() != nil {
			return
		}
	}
}

// serve sends what was appended, until the appender has ended and all is sent.
func (t *liveTail) serve(c net.Conn, offset int64, sent <-chan struct{}) {
	for over := false; ; {
		n, next, err := fetchTo(c, t.log, offset)
		if err != nil {
			t.errs <- err
			return
		}
		if offset = next; n > 0 {
			continue
		}
		if over {
			return
		}
		select {
		case <-t.news:
		case <-sent:
			over = true
		}
	}
}

// receive takes note of when appends arrive. Each answer has a length before it.
func (t *liveTail) receive(c net.Conn) {
	buf := make([]byte, 256<<10)
	var r answers
	for {
		n, err := c.Read(buf)
		now, got := time.Now(), r.take(buf[:n])
		t.mu.Lock()
		done := 0
		for done < len(t.due) && t.due[done].end <= got {
			t.reads = append(t.reads, now.Sub(t.due[done].at))
			done++
		}
		t.due = t.due[done:]
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}
