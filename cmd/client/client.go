// Package client is what the commands do that talk to a broker: topics, produce and consume. It uses
// the public Go client and Kafka's protocol alone, so it works against any Kafka-compatible cluster.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Options say whom to talk to.
type Options struct {
	Bootstrap []string // host:port; 9092 where no port is given
	Timeout   time.Duration
	ClientID  string
}

// Connect makes a client and makes sure that a broker answers. The caller closes it.
func (o Options) Connect(ctx context.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap...),
		kgo.ClientID(o.ClientID),
		kgo.DialTimeout(o.Timeout),
		kgo.RetryTimeout(o.Timeout),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.DisableClientMetrics(),
	}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	pingCtx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := cl.Ping(pingCtx); err != nil {
		cl.Close()
		return nil, fmt.Errorf("no broker answers at %s: %w", strings.Join(o.Bootstrap, ", "), cause(err))
	}
	return cl, nil
}

// admin is Connect for what is asked and answered once.
func (o Options) admin(ctx context.Context) (*kadm.Client, error) {
	cl, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(int32(o.Timeout.Milliseconds()))
	return adm, nil
}

// cause shortens the client's errors to what a user can act on.
func cause(err error) error {
	var op *net.OpError
	var shards *kadm.ShardErrors // one error for each broker that was asked
	if errors.As(err, &shards) && len(shards.Errs) > 0 {
		err = fmt.Errorf("%w (%s)", shards.Errs[0].Err, shards.Name)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused (is a broker running there?)")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &op):
		return op
	}
	return err
}

// SplitBootstrap reads a comma-separated list of brokers.
func SplitBootstrap(s string) ([]string, error) {
	var out []string
	for _, b := range strings.Split(s, ",") {
		b = strings.TrimSpace(b)
		if b == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(b); err != nil {
			b = net.JoinHostPort(strings.Trim(b, "[]"), "9092")
		}
		out = append(out, b)
	}
	if len(out) == 0 {
		return nil, errors.New("no broker is named")
	}
	return out, nil
}
