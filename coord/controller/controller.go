// Package controller chooses leaders and places replicas: a pure core with a driver.
//
// Every broker has a Controller. They race for the ephemeral /controller; the one that has it is the
// controller, the others watch it. Its epoch, /controller_epoch, rises in the same multi, and every
// write of a controller is a multi that checks that znode's version: one that was deposed without
// knowing cannot write.
//
// The driver is one goroutine: watches only raise a flag and wake it (news is read, never carried by an
// event), requests are queued to it. What it decides it writes first, in as few multis as
// jute.maxbuffer allows, then tells the brokers (Brokers). When a write's outcome is unknown, it reads
// everything again. While the coordinator is away nothing changes and requests wait; when the session
// is lost, everybody answers ErrNotController until the broker has registered anew (Session).
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/clock"
)

// Errors, mapped to Kafka's codes in net/api.
var (
	ErrNotController      = errors.New("not the controller")
	ErrTopicExists        = errors.New("topic exists")
	ErrUnknownTopic       = errors.New("unknown topic")
	ErrUnknownTopicID     = errors.New("unknown topic id")
	ErrInvalidTopic       = errors.New("invalid topic name")
	ErrInvalidPartitions  = errors.New("invalid partition count")
	ErrInvalidReplication = errors.New("invalid replication factor")
	ErrInvalidAssignment  = errors.New("invalid replica assignment")
	ErrInvalidConfig      = errors.New("invalid configuration")
	ErrTimeout            = errors.New("not done in time")
	// ErrStaleController and ErrStaleBroker are a broker's refusals of a push.
	ErrStaleController = errors.New("controller epoch is stale")
	ErrStaleBroker     = errors.New("broker epoch is stale")
)

// NewTopic is one topic to create. PartitionCount and ReplicationFactor -1: the broker's default.
type NewTopic struct {
	Name              string
	PartitionCount    int32
	ReplicationFactor int16
	Assignment        [][]int32 // replicas by partition; nil: placed by the controller
	Configs           map[string]*string
	ValidateOnly      bool
}

// Created is the outcome of one NewTopic. Err wraps one of the errors above with a message for the client.
type Created struct {
	Name              string
	ID                store.UUID
	PartitionCount    int32
	ReplicationFactor int16
	Err               error
}

// Config is what a controller needs to know.
type Config struct {
	BrokerID              int32
	PartitionCountDefault int32 // num.partitions
	ReplicationDefault    int16 // default.replication.factor
	DeleteDisabled        bool  // delete.topic.enable=false
	// CheckTopic says what is wrong with a topic's overrides; nil: nothing ever is.
	CheckTopic func(topic string, overrides map[string]string) error
	// Unclean says whether a topic allows unclean leader election; nil: none does.
	Unclean func(topic string) bool
	Balance Balance
	// Meter is told what the controller does; nil: nobody measures.
	Meter   Meter
	Brokers Brokers
	Clock   clock.Clock
	Log     *slog.Logger
}

// Meter measures a controller. Its methods are quick, and called by the driver alone.
type Meter interface {
	// Waited is how long a request or news waited for the driver, Took how long the driver was at it.
	Waited(time.Duration)
	Took(time.Duration)
	// Elected: the driver gave so many partitions another leader, some of them from outside of the in-sync set,
	// and was at it for so long.
	Elected(partitions, unclean int, took time.Duration)
}

type noMeter struct{}

func (noMeter) Waited(time.Duration)              {}
func (noMeter) Took(time.Duration)                {}
func (noMeter) Elected(_, _ int, _ time.Duration) {}

// Coordinator is what a controller uses of *zkclient.Client.
type Coordinator interface {
	Session() (id int64, password []byte)
	Create(ctx context.Context, path string, data []byte, m zkclient.CreateMode) (string, error)
	Delete(ctx context.Context, path string, version int32) error
	Get(ctx context.Context, path string, watch func(zkclient.Event)) ([]byte, zkclient.Stat, error)
	GetMany(ctx context.Context, paths []string) ([]zkclient.Node, error)
	Set(ctx context.Context, path string, data []byte, version int32) (zkclient.Stat, error)
	Children(ctx context.Context, path string, watch func(zkclient.Event)) ([]string, zkclient.Stat, error)
	Multi(ctx context.Context, ops ...zkclient.Op) ([]zkclient.Result, error)
	Exists(ctx context.Context, path string, watch func(zkclient.Event)) (zkclient.Stat, error)
}

// Controller is this broker's part in it; a broker that is not the controller answers ErrNotController.
// Safe for concurrent use.
type Controller struct {
	cfg      Config
	requests chan func(*term)
	wake     chan struct{}
	flags    atomic.Uint32

	life  context.Context
	end   context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	zk     Coordinator // of the newest session; nil: none
	joiner chan error  // who waits for its election, until the driver takes it; has room

	creations []*creation // that wait for the driver
	answers   []answer    // of brokers, that the driver has not read

	active  atomic.Bool
	over    atomic.Bool  // it has resigned
	waiting atomic.Int64 // requests that the driver has not taken
	unsent  atomic.Int64 // messages that brokers have not taken
	raised  atomic.Int64 // when the oldest news that the driver has not seen came, in Unix microseconds; 0: there is none

	// The driver's own.
	retryDelay time.Duration
	joining    chan error
	senders    map[int32]*sender
}

// New starts the driver; it has nothing to do until Session.
func New(cfg Config) *Controller {
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	c := &Controller{
		cfg:      cfg,
		requests: make(chan func(*term)),
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		senders:  make(map[int32]*sender),

		retryDelay: retryDelayMin,
	}
	c.life, c.end = context.WithCancel(context.Background())
	go c.run()
	go c.watchBalance()
	return c
}

// Session gives the controller a session under which the broker is registered, and waits for the
// outcome of the election: when it returns nil, somebody is the controller, and if it is this broker
// then the cluster was read, leaders were elected and the brokers told. zkclient.ErrSessionExpired, ErrClosed: the session
// has ended before.
func (c *Controller) Session(ctx context.Context, zk Coordinator) error {
	joiner := make(chan error, 1)
	c.mu.Lock()
	c.zk, c.joiner = zk, joiner
	c.mu.Unlock()
	c.raise(newSession)
	select {
	case err := <-joiner:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return ErrNotController
	}
}

// Lost takes the session away: it expired. Requests get ErrNotController until the next Session.
func (c *Controller) Lost() {
	c.mu.Lock()
	if c.joiner != nil {
		c.joiner <- ErrNotController
	}
	c.zk, c.joiner = nil, nil
	c.mu.Unlock()
	c.active.Store(false)
	c.raise(newSession)
}

// Reread makes the controller look at everything again: the session's connection was lost and is back.
func (c *Controller) Reread() { c.raise(reread) }

// Reconfigured makes the controller ask Unclean anew: settings of topics or brokers have changed. Where that
// allows a leader to a partition that waits for one, it is elected.
func (c *Controller) Reconfigured() { c.raise(configNews) }

// Active says whether this broker is the controller, as far as it knows.
func (c *Controller) Active() bool { return c.active.Load() }

// Waiting is how many requests wait for the driver, and how many messages for brokers that have not taken them.
func (c *Controller) Waiting() (requests, messages int) {
	return int(c.waiting.Load()), int(c.unsent.Load())
}

// Resign gives the controllership up, for good: for a broker that is about to stop, so that another is the controller before
// this one is gone. ErrNotController: it was not the controller; another error: it is still.
func (c *Controller) Resign(ctx context.Context) error {
	c.over.Store(true)
	return c.do(ctx, func(t *term) error {
		if _, err := t.multi(zkclient.DeleteOp(cluster.ControllerPath, -1)); err != nil {
			t.unknown(err)
			return err
		}
		t.c.active.Store(false)
		t.depose()
		return nil
	})
}

// Stop ends the driver. The session is the caller's to close.
func (c *Controller) Stop() {
	c.end()
	<-c.ended
	c.active.Store(false)
}

// do runs f on the driver's goroutine while this broker is the controller, and waits for it until ctx
// ends: then f may still be done.
func (c *Controller) do(ctx context.Context, f func(*term) error) error {
	done := make(chan error, 1)
	began := c.cfg.Clock.Now()
	c.waiting.Add(1)
	job := func(t *term) {
		c.cfg.Meter.Waited(c.cfg.Clock.Now().Sub(began))
		if t == nil {
			done <- ErrNotController
			return
		}
		done <- f(t)
	}
	select {
	case c.requests <- job:
		c.waiting.Add(-1)
	case <-ctx.Done():
		c.waiting.Add(-1)
		return fmt.Errorf("%w: the controller was busy", ErrTimeout)
	case <-c.life.Done():
		c.waiting.Add(-1)
		return ErrNotController
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: the controller is at it", ErrTimeout)
	}
}

// ask runs f on the driver's goroutine and gives what it returns; errors as do.
func ask[T any](ctx context.Context, c *Controller, f func(*term) T) (T, error) {
	got := make(chan T, 1)
	err := c.do(ctx, func(t *term) error {
		got <- f(t)
		return nil
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-got, nil
}
