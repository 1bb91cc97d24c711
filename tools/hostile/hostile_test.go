// Package hostile sends a real broker process what no client should: each costs its own connection at
// most, and what was stored stays served.
package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

const topic = "kept"

// victim is a broker with one record in it, and a check that it is still served.
type victim struct {
	*proc.Broker
	t *testing.T
}

func start(t *testing.T) *victim {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["num.partitions"] = "1"
	b.Start()
	v := &victim{b, t}
	cl := v.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("still here")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *victim) client(opts ...kgo.Opt) *kgo.Client {
	v.t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(v.Addr()), kgo.AllowAutoTopicCreation())...)
	if err != nil {
		v.t.Fatal(err)
	}
	return cl
}

// stillServes reads the record back, on a fresh connection, from the same process.
func (v *victim) stillServes(pid int) {
	v.t.Helper()
	if v.Pid() != pid {
		v.t.Fatal("the process is another one")
	}
	cl := v.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	fs := cl.PollFetches(ctx)
	if err := fs.Err(); err != nil {
		v.t.Fatalf("the broker no longer serves: %v", err)
	}
	if rs := fs.Records(); len(rs) == 0 || string(rs[0].Value) != "still here" {
		v.t.Fatalf("the stored record is not what it was: %v", rs)
	}
}

func (v *victim) dial() net.Conn {
	v.t.Helper()
	c, err := net.Dial("tcp", v.Addr())
	if err != nil {
		v.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return c
}

// closes reports whether the broker ends the connection after p, and what it said before.
func (v *victim) closes(p []byte) (answer []byte, closed bool) {
	c := v.dial()
	defer c.Close()
	_, _ = c.Write(p)
	answer, err := io.ReadAll(c)
	return answer, err == nil || strings.Contains(err.Error(), "reset")
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// header is a version 1 request header.
func header(key, version int16) []byte {
	p := binary.BigEndian.AppendUint16(nil, uint16(key))
	p = binary.BigEndian.AppendUint16(p, uint16(version))
	p = binary.BigEndian.AppendUint32(p, 1)
	return append(p, 0, 1, 'x')
}

// TestBadFrames: every frame costs its own connection, the log names the cause, the record stays.
func TestBadFrames(t *testing.T) {
	v := start(t)
	pid := v.Pid()
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	for _, c := range []struct {
		name  string
		bytes []byte
		cause string // stands in the log
	}{
		{"over-long frame", huge, "socket.request.max.bytes"},
		{"negative length", []byte{0xff, 0xff, 0xff, 0xff}, ""},
		{"http", []byte("GET / HTTP/1.1\r\n\r\n"), ""},
		{"tls hello", []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03}, "TLS"},
		{"empty frame", frame(nil), ""},
		{"short header", frame([]byte{0, 3}), ""},
		{"unknown key", frame(header(9999, 0)), "9999"},
		{"version from the future", frame(header(3, 99)), "99"},
		{"negative version", frame(header(3, -1)), "-1"},
		{"metadata with 2^31 topics", frame(append(header(3, 4), huge...)), ""},
		{"fetch with 2^31 topics", frame(append(append(header(1, 4), make([]byte, 17)...), huge...)), ""},
		{"produce with 2^31 topics", frame(append(append(header(0, 3), 0xff, 0xff, 0, 1, 0, 0, 0, 1), huge...)), ""},
		{"create with 2^31 topics", frame(append(header(19, 2), huge...)), ""},
		{"list offsets with 2^31 topics", frame(append(append(header(2, 1), 0xff, 0xff, 0xff, 0xff), huge...)), ""},
	} {
		before := len(v.Log())
		if _, closed := v.closes(c.bytes); !closed {
			t.Errorf("%s: the connection stays open", c.name)
		}
		if said := v.said(before); !strings.Contains(said, c.cause) || said == "" {
			t.Errorf("%s: the log does not name the cause (%q): %q", c.name, c.cause, said)
		}
	}
	v.stillServes(pid)
}

// TestGarbage: random bytes, and truncated and bent copies of good requests.
func TestGarbage(t *testing.T) {
	v := start(t)
	pid := v.Pid()
	rnd := rand.New(rand.NewPCG(11, 12))
	good := goodRequests()
	for range 400 {
		p := bytes.Clone(good[rnd.IntN(len(good))])
		switch rnd.IntN(3) {
		case 0:
			p = make([]byte, rnd.IntN(500))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
		case 1:
			p = p[:rnd.IntN(len(p))]
		case 2:
			for range 1 + rnd.IntN(8) {
				p[rnd.IntN(len(p))] = byte(rnd.Uint32())
			}
		}
		c := v.dial()
		_, _ = c.Write(p)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	v.stillServes(pid)
}

// goodRequests are whole frames of the requests that carry the most structure.
func goodRequests() [][]byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bent"))
	var out [][]byte
	for key := range int16(70) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		for v := range req.MaxVersion() + 1 {
			req.SetVersion(v)
			out = append(out, f.AppendRequest(nil, req, 5))
		}
	}
	b := batch.NewBuilder()
	b.Add(time.Now().UnixMilli(), []byte("k"), []byte("v"))
	built, _ := b.Build()
	for v := int16(3); v <= 9; v++ {
		out = append(out, f.AppendRequest(nil, produce(v, built), 5))
	}
	return out
}

func produce(version int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, 1, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = records
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// TestBadBatches: each is refused with its own code, on a connection that lives on, and stores nothing.
func TestBadBatches(t *testing.T) {
	v := start(t)
	pid := v.Pid()
	cl := v.client()
	defer cl.Close()
	bend := func(change func(batch.Batch), fixCRC bool) []byte {
		b := batch.NewBuilder()
		for i := range 3 {
			b.Add(time.Now().UnixMilli(), nil, fmt.Appendf(nil, "value %d", i))
		}
		built, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		change(built)
		if fixCRC {
			setCRC(built)
		}
		return built
	}
	const (
		corrupt, tooLarge, unsupportedCodec, invalidRecord = 2, 10, 76, 87
	)
	for _, c := range []struct {
		name    string
		records []byte
		codes   []int16
	}{
		{"bad CRC", bend(func(b batch.Batch) { b[len(b)-1] ^= 1 }, false), []int16{corrupt}},
		{"magic 0", bend(func(b batch.Batch) { b[16] = 0 }, false), []int16{invalidRecord}},
		{"magic 7", bend(func(b batch.Batch) { b[16] = 7 }, false), []int16{corrupt, invalidRecord}},
		{"more records than it says", bend(func(b batch.Batch) { b[60] = 2; b[26] = 1 }, true), []int16{invalidRecord, corrupt}},
		{"fewer records than it says", bend(func(b batch.Batch) { b[60] = 9; b[26] = 8 }, true), []int16{invalidRecord, corrupt}},
		{"count against delta", bend(func(b batch.Batch) { b[26] = 7 }, true), []int16{invalidRecord, corrupt}},
		{"2^31-1 records", bend(func(b batch.Batch) { binary.BigEndian.PutUint32(b[57:], 1<<31-1) }, true), []int16{invalidRecord, corrupt}},
		{"negative count", bend(func(b batch.Batch) { binary.BigEndian.PutUint32(b[57:], 1<<31) }, true), []int16{invalidRecord, corrupt}},
		{"unknown codec", bend(func(b batch.Batch) { b[22] = 7 }, true), []int16{unsupportedCodec, invalidRecord, corrupt}},
		{"length beyond the bytes", bend(func(b batch.Batch) { b[11]++ }, true), []int16{invalidRecord}},
		{"length of 2^31-1", bend(func(b batch.Batch) { binary.BigEndian.PutUint32(b[8:], 1<<31-1) }, true), []int16{corrupt, tooLarge, invalidRecord}},
		{"cut short", bend(func(batch.Batch) {}, false)[:50], []int16{invalidRecord}},
		{"no batch", nil, []int16{corrupt, invalidRecord}},
		{"zstd garbage", bend(func(b batch.Batch) { b[22] = 4 }, true), []int16{invalidRecord}},
		{"lz4 garbage", bend(func(b batch.Batch) { b[22] = 3 }, true), []int16{invalidRecord}},
		{"snappy garbage", bend(func(b batch.Batch) { b[22] = 2 }, true), []int16{invalidRecord}},
		{"gzip garbage", bend(func(b batch.Batch) { b[22] = 1 }, true), []int16{invalidRecord}},
	} {
		code, err := v.produce(c.records)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ok := false
		for _, want := range c.codes {
			ok = ok || code == want
		}
		if !ok {
			t.Errorf("%s: error code %d, want one of %v", c.name, code, c.codes)
		}
	}
	if n := v.logEnd(); n != 1 {
		t.Errorf("the log ends at %d: something bad was stored", n)
	}
	v.stillServes(pid)
}

// TestBombs: a small batch that inflates to half a gigabyte is refused in every codec, in little memory.
func TestBombs(t *testing.T) {
	v := start(t)
	pid := v.Pid()
	zeros := make([]byte, 64<<20)
	for codec := batch.Gzip; codec <= batch.Zstd; codec++ {
		b := batch.NewBuilder()
		b.Codec = codec
		b.Add(time.Now().UnixMilli(), nil, zeros)
		for range 7 {
			b.Add(time.Now().UnixMilli(), nil, zeros)
		}
		built, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		code, err := v.produce(built)
		if err != nil {
			// A codec that cannot pack it into a frame is refused as a frame.
			t.Logf("codec %d, %d bytes: %v", codec, len(built), err)
		} else if code == 0 {
			t.Errorf("codec %d: a bomb of %d bytes was stored", codec, len(built))
		}
	}
	if rss := v.RSSBytes(); rss > 400<<20 {
		t.Errorf("the bombs left %d MiB resident", rss>>20)
	}
	v.stillServes(pid)
}

// TestSilentAnnouncers: 1,000 peers announce 100 MB each and send nothing.
func TestSilentAnnouncers(t *testing.T) {
	v := start(t)
	pid := v.Pid()
	announce := binary.BigEndian.AppendUint32(nil, 100_000_000)
	announce = append(announce, header(0, 9)...)
	for range 1000 {
		c := v.dial()
		defer c.Close()
		if _, err := c.Write(announce); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(500 * time.Millisecond)
	if rss := v.RSSBytes(); rss > 300<<20 {
		t.Errorf("1,000 announcements cost %d MiB", rss>>20)
	} else {
		t.Logf("resident: %d MiB", rss>>20)
	}
	v.stillServes(pid)
}
