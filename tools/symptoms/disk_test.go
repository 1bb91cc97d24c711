package symptoms

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// futureApiVersions sends ApiVersions with version 99 and returns the answer behind the correlation id.
func futureApiVersions(t *testing.T, addr string, req *kmsg.ApiVersionsRequest) []byte {
	t.Helper()
	req.Version = 3
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("future")).AppendRequest(nil, req, 7)
	binary.BigEndian.PutUint16(frame[6:], 99)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return body
}

// segments writes numbered records into several small segments and returns how many.
func (s *site) segments(topic string) int {
	s.t.Helper()
	const n = 400
	for i := range n {
		s.produce(&kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%04d %s", i, bytes.Repeat([]byte("x"), 1000))})
	}
	return n
}

var smallSegments = map[string]string{"log.segment.bytes": "65536", "log.index.interval.bytes": "1024"}

func (s *site) files(topic, suffix string) []string {
	s.t.Helper()
	fs, err := filepath.Glob(filepath.Join(s.Dir, "data", topic+"-0", "*"+suffix))
	if err != nil || len(fs) < 3 {
		s.t.Fatalf("%d files %s of %s, %v", len(fs), suffix, topic, err)
	}
	slices.Sort(fs)
	return fs
}

// readable reads the topic from its start, skipping over offsets that are refused as corrupt, and returns
// the numbers of the records that came.
func (s *site) readable(topic string, n int) map[int]bool {
	s.t.Helper()
	got := map[int]bool{}
	for offset := int64(0); offset < int64(n); {
		p := s.fetch(topic, offset, 0)
		switch p.ErrorCode {
		case 0:
		case 2: // CORRUPT_MESSAGE
			offset++
			continue
		default:
			s.t.Fatalf("fetch at %d: error code %d", offset, p.ErrorCode)
		}
		next := offset
		for b := p.RecordBatches; len(b) >= 61; {
			size := 12 + int(binary.BigEndian.Uint32(b[8:]))
			if size > len(b) {
				break
			}
			base := int64(binary.BigEndian.Uint64(b))
			got[int(base)] = true
			next = base + 1 + int64(binary.BigEndian.Uint32(b[23:]))
			b = b[size:]
		}
		offset = max(next, offset+1)
	}
	return got
}

// An index file overwritten with garbage cost memory or data.
func TestGarbageIndex(t *testing.T) {
	s := start(t, smallSegments)
	n := s.segments("indexed")
	s.Stop()
	garbage := bytes.Repeat([]byte{0xff, 0x13, 0x77}, 100_000)
	for _, suffix := range []string{".index", ".timeindex"} {
		for _, f := range s.files("indexed", suffix) {
			if err := os.WriteFile(f, garbage, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Start()
	if got := s.readable("indexed", n); len(got) != n {
		t.Errorf("%d of %d records are there", len(got), n)
	}
	if rss := s.RSSBytes(); rss > 200<<20 {
		t.Errorf("%d MiB resident", rss>>20)
	}
}

// One flipped bit in a sealed segment cost more than its batch.
func TestFlippedBit(t *testing.T) {
	s := start(t, smallSegments)
	n := s.segments("rotten")
	s.Stop()
	logs := s.files("rotten", ".log")
	p, err := os.ReadFile(logs[1])
	if err != nil {
		t.Fatal(err)
	}
	p[len(p)/2] ^= 1
	if err := os.WriteFile(logs[1], p, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Start()
	got := s.readable("rotten", n)
	if len(got) < n-1 {
		t.Errorf("one bit cost %d records", n-len(got))
	}
	s.produce(&kgo.Record{Topic: "rotten", Value: []byte("goes on")})
}

// A record with a timestamp in microseconds blocked retention.
func TestMicrosecondsDoNotBlockRetention(t *testing.T) {
	s := start(t, map[string]string{
		"log.segment.bytes": "65536", "log.retention.ms": "1000",
		"log.retention.check.interval.ms": "200", "log.segment.delete.delay.ms": "0",
	})
	micros := time.UnixMilli(time.Now().UnixMicro())
	for range 100 {
		s.produce(&kgo.Record{Topic: "micros", Timestamp: micros, Value: bytes.Repeat([]byte("x"), 4000)})
	}
	for s.ctx.Err() == nil {
		if fs, _ := filepath.Glob(filepath.Join(s.Dir, "data", "micros-0", "*.log")); len(fs) == 1 && !strings.HasSuffix(fs[0], "00000000000000000000.log") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the segments are still there")
}
