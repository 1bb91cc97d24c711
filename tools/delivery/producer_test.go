package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/history"
	"platter/tools/proc"
)

// Ways to produce. At least once means: acknowledged by all, sent again when in doubt, and nothing by which the
// broker could tell that it has the record already.
var (
	atMostOnce  = []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.RecordRetries(0)}
	atLeastOnce = []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks())}
	idempotent  = []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.StopProducerOnDataLossDetected()}
)

func newProducer(addr string, opts []kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
		kgo.ProducerBatchMaxBytes(4096), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
	}, opts...)...)
}

// throughProxy is a broker that clients reach through a proxy only.
func throughProxy(t *testing.T) (*proc.Broker, *proxy) {
	t.Helper()
	p := newProxy(t)
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["advertised.listeners"] = "PLAINTEXT://" + p.addr()
	p.start(t, b.Addr())
	b.Start()
	proc.CreateTopic(t, p.addr(), "t", partitionCount)
	return b, p
}

// sendAll numbers records for each partition and sends them, and returns what came of each: the offset, -1
// where there is none.
func sendAll(t *testing.T, addr string, records int, opts []kgo.Opt) []history.Record {
	t.Helper()
	cl, err := newProducer(addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	sent := make([]history.Record, records)
	var mu sync.Mutex
	for i := range sent {
		partition, seq := int32(i%partitionCount), int64(i/partitionCount)
		sent[i] = history.Record{Partition: partition, Sequence: seq, Offset: -1}
		cl.Produce(context.Background(), record(partition, 0, seq), func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sent[i].Offset = r.Offset
			}
		})
		// A few at a time, so that there are many requests.
		if i%10 == 9 {
			flush(t, cl)
		}
	}
	flush(t, cl)
	return sent
}

func flush(t *testing.T, cl *kgo.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func record(partition, producer int32, seq int64) *kgo.Record {
	return &kgo.Record{Topic: "t", Partition: partition, Value: fmt.Appendf(nil, "%d %d", producer, seq)}
}

// readAll is the whole topic.
func readAll(t *testing.T, addr string) []history.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	var out []history.Record
	for left > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fs.RecordsAll() {
			h := history.Record{Partition: r.Partition, Offset: r.Offset}
			if _, err := fmt.Sscanf(string(r.Value), "%d %d", &h.Producer, &h.Sequence); err != nil {
				t.Fatalf("%q: %v", r.Value, err)
			}
			out = append(out, h)
			left--
		}
	}
	return out
}

// kinds counts the broken promises.
func kinds(vs []history.Violation) map[history.Kind]int {
	out := map[history.Kind]int{}
	for _, v := range vs {
		out[v.Kind]++
	}
	return out
}

// TestProducersWhenConnectionsBreak cuts one Produce in five off, before the broker has it or after, and counts for
// each way to produce.
func TestProducersWhenConnectionsBreak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts           []kgo.Opt
		loses, doubles bool
	}{
		"at most once":  {atMostOnce, true, false},
		"at least once": {atLeastOnce, false, true},
		"idempotent":    {idempotent, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, p := throughProxy(t)
			rnd := proc.Random(t, *seed)
			cuts := map[moment]int{}
			p.onProduce(func(m moment) bool {
				if rnd.IntN(10) > 0 {
					return false
				}
				cuts[m]++
				return true
			})
			sent := sendAll(t, p.addr(), 1500, c.opts)
			p.onProduce(func(moment) bool { return false })
			if cuts[beforeAppend] == 0 || cuts[afterAppend] == 0 {
				t.Fatalf("the cuts missed their moments: %v", cuts)
			}
			read := readAll(t, p.addr())
			absent := missing(sent, read)
			got := kinds(history.Check(sent, read))
			t.Logf("%d requests and %d answers lost: %d records absent, broken promises %v", cuts[beforeAppend], cuts[afterAppend], absent, got)
			if (absent > 0) != c.loses {
				t.Errorf("%d records are absent", absent)
			}
			if (got[history.Duplicated] > 0) != c.doubles {
				t.Errorf("%d records are there more than once", got[history.Duplicated])
			}
			if got[history.Lost] > 0 || got[history.Unknown] > 0 || got[history.Hole] > 0 {
				t.Errorf("broken promises: %v", got)
			}
			if name == "idempotent" && len(got) > 0 {
				t.Errorf("broken promises: %v", got)
			}
		})
	}
}

// missing counts the records that are not in the log, acknowledged or not.
func missing(sent, read []history.Record) int {
	there := map[[2]int64]bool{}
	for _, r := range read {
		there[[2]int64{int64(r.Partition), r.Sequence}] = true
	}
	n := 0
	for _, r := range sent {
		if !there[[2]int64{int64(r.Partition), r.Sequence}] {
			n++
		}
	}
	return n
}

// TestIdempotentWhenTheBrokerDies kills the broker when it has appended a batch and its answer is under way. What
// the broker knows of its producers must come back with it, or the batch that is sent again is there twice.
func TestIdempotentWhenTheBrokerDies(t *testing.T) {
	t.Parallel()
	b, p := throughProxy(t)
	rnd := proc.Random(t, *seed)
	const kills = 10
	dead, back, done := make(chan bool), make(chan bool), make(chan bool)
	killed := 0
	p.onProduce(func(m moment) bool {
		if m == beforeAppend || killed == kills || rnd.IntN(8) > 0 {
			return false
		}
		killed++
		dead <- true
		<-back
		return true
	})
	go func() {
		defer close(done)
		for range kills {
			<-dead
			b.Kill()
			b.Launch()
			back <- true
		}
	}()
	sent := sendAll(t, p.addr(), 3000, idempotent)
	p.onProduce(func(moment) bool { return false })
	if killed < kills {
		t.Fatalf("%d kills only", killed)
	}
	<-done
	read := readAll(t, p.addr())
	for _, v := range history.Check(sent, read) {
		t.Error(v)
	}
	if n := missing(sent, read); n > 0 {
		t.Errorf("%d records are absent", n)
	}
}

// producerArgs tell the child what to send, and as whom.
type producerArgs struct {
	Addr     string
	Producer int32
}

// produce is the child: an idempotent producer that sends numbered records as fast as it can, and says first
// which it will send, then which are acknowledged.
func produce(text []byte) error {
	var a producerArgs
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	cl, err := newProducer(a.Addr, idempotent)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(line)
	}
	for i := int64(0); ; i++ {
		partition, seq := int32(i%partitionCount), i/partitionCount
		say(fmt.Sprintf("sent %d %d -1", partition, seq))
		cl.Produce(context.Background(), record(partition, a.Producer, seq), func(r *kgo.Record, err error) {
			if err == nil {
				say(fmt.Sprintf("acked %d %d %d", partition, seq, r.Offset))
			}
		})
	}
}

// TestIdempotentWhenTheProducerDies kills one producer after the other with requests under way. What it was told is
// there once; what it was not told is there once or not at all.
func TestIdempotentWhenTheProducerDies(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	proc.CreateTopic(t, b.Addr(), "t", partitionCount)
	rnd := proc.Random(t, *seed)
	var sent []history.Record
	for producer := range int32(6) {
		c := proc.StartChild(t, "produce", producerArgs{b.Addr(), producer})
		left := 50 + rnd.IntN(2000)
		for line := range c.Lines {
			r := history.Record{Producer: producer}
			f := strings.Fields(line)
			if len(f) != 4 {
				t.Fatalf("the producer said %q", line)
			}
			partition, _ := strconv.Atoi(f[1])
			r.Partition = int32(partition)
			r.Sequence, _ = strconv.ParseInt(f[2], 10, 64)
			r.Offset, _ = strconv.ParseInt(f[3], 10, 64)
			sent = append(sent, r)
			if f[0] == "acked" {
				if left--; left == 0 {
					c.Signal(syscall.SIGKILL)
				}
			}
		}
		if left > 0 {
			t.Fatalf("a producer has ended by itself: %v", c.Wait())
		}
	}
	read := readAll(t, b.Addr())
	t.Logf("%d lines of producers, %d records in the log", len(sent), len(read))
	for i, v := range history.Check(sent, read) {
		if i < 10 {
			t.Error(v)
		}
	}
}
