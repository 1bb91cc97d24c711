package brokerbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Footprint is what a broker takes when it has little or nothing to do.
type Footprint struct {
	Bench              string         `json:"bench"`
	FirstAnswerSeconds float64        `json:"first_answer_seconds"` // from the process's start to the first answered request
	Rows               []FootprintRow `json:"rows"`
}

// FootprintRow is the broker's resident memory in one situation; each builds on the one before, but
// connections are closed again.
type FootprintRow struct {
	Situation string `json:"situation"`
	RSSBytes  int64  `json:"rss_bytes"`
}

// MeasureFootprint starts a broker on an empty directory and loads it with partitions, idle connections
// and groups, without traffic. A count that the machine's limits do not allow is left out by name.
func MeasureFootprint(ctx context.Context, o Options) (res *Footprint, err error) {
	dir, err := tempDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	broker, err := startBroker(ctx, o.Exe, dir, o.Settings)
	if err != nil {
		return nil, err
	}
	defer broker.stop()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.addr))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if _, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl); err != nil {
		return nil, err
	}
	f := &footprint{broker: broker, admin: kadm.NewClient(cl), o: o,
		res: &Footprint{Bench: "footprint", FirstAnswerSeconds: time.Since(began).Seconds()}}
	return f.res, f.run(ctx)
}

var format = kmsg.NewRequestFormatter(kmsg.FormatterClientID("platter-bench"))

type footprint struct {
	broker *child
	admin  *kadm.Client
	o      Options
	res    *Footprint
}

func (f *footprint) run(ctx context.Context) error {
	if err := f.note("idle"); err != nil {
		return err
	}
	for _, n := range []int{1000, 10_000} {
		if err := f.connections(n); err != nil {
			return err
		}
	}
	if err := f.groups(ctx, 1000); err != nil {
		return err
	}
	for _, n := range []int{1000, 10_000} {
		if _, err := f.admin.CreateTopic(ctx, int32(n), 1, nil, fmt.Sprintf("partitions-%d", n)); err != nil {
			return err
		}
		if err := f.note(fmt.Sprintf("%d partitions more", n)); err != nil {
			return err
		}
	}
	return nil
}

// note lets the broker come to rest and takes its resident memory.
func (f *footprint) note(situation string) error {
	time.Sleep(time.Second)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.broker.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("resident memory is read from /proc: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			f.res.Rows = append(f.res.Rows, FootprintRow{situation, kb << 10})
			return nil
		}
	}
	return errors.New("no VmRSS in /proc")
}

// connections opens n connections, of which each asks once and then is idle.
func (f *footprint) connections(n int) error {
	ask := format.AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range n {
		c, err := net.DialTimeout("tcp", f.broker.addr, 2*time.Second)
		if err == nil {
			open = append(open, c)
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			if _, err = c.Write(ask); err == nil {
				_, err = c.Read(make([]byte, 4096))
			}
		}
		if err != nil {
			return f.note(fmt.Sprintf("%d idle connections (of %d: %v)", len(open), n, err))
		}
	}
	return f.note(fmt.Sprintf("%d idle connections", n))
}

// groups commits an offset in n groups.
func (f *footprint) groups(ctx context.Context, n int) error {
	if _, err := f.admin.CreateTopic(ctx, 1, 1, nil, "grouped"); err != nil {
		return err
	}
	for i := range n {
		offsets := kadm.Offsets{}
		offsets.AddOffset("grouped", 0, 0, -1)
		if err := f.admin.CommitAllOffsets(ctx, fmt.Sprintf("group-%d", i), offsets); err != nil {
			return err
		}
	}
	return f.note(fmt.Sprintf("%d groups with an offset each", n))
}
