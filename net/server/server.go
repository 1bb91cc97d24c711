// Package server is the broker's side of its connections: listeners, frames in, replies out in request
// order, and every bound that keeps one peer from costing the others anything.
//
// Each connection has two goroutines. The reader reads one frame at a time into a pooled buffer. A
// produce is handed to the handler at once, so that produces reach their partitions in arrival order,
// and only the wait for acknowledgement overlaps. Any other request is a barrier: it is handled by the
// connection's second goroutine, the writer, when everything before it was answered, and the reader
// hands over nothing more until it was answered itself. The reader goes on reading one frame ahead,
// which is how a peer that goes away during a long poll is noticed: the request's context ends.
//
// A frame's bytes belong to its Request until Release.
package server

import (
	"context"
	"log/slog"
	"net"
	"time"

	"platter/net/console"
	"platter/net/frame"
)

// Listener is one open listener and its name in Kafka's `listeners`, by which metadata answers choose
// the endpoints that they tell a client.
type Listener struct {
	Name string // "PLAINTEXT"
	net.Listener
}

// Config is what the server needs; the names are Kafka's. A zero bound is replaced by Kafka's default.
type Config struct {
	Listeners []Listener // owned by the server from New on
	Handler   Handler
	Log       *slog.Logger
	Metrics   *console.Metrics

	RequestBytesMax       int           // socket.request.max.bytes
	SendBufferBytes       int           // socket.send.buffer.bytes, -1: the system's
	ReceiveBufferBytes    int           // socket.receive.buffer.bytes, -1: the system's
	IdleMax               time.Duration // connections.max.idle.ms
	ConnectionsMax        int           // max.connections
	ConnectionsPerIPMax   int           // max.connections.per.ip
	ConnectionsOverrides  map[string]int // max.connections.per.ip.overrides
	QueuedRequestsMax     int           // queued.max.requests: unanswered requests of one connection
	QueuedRequestBytesMax int64         // queued.max.request.bytes: frames in memory, all connections, -1: no bound
	WriteTimeout          time.Duration // a peer that takes no byte for so long is dropped
	DrainMax              time.Duration // how long Close lets requests finish
}

// Handler answers requests; net/api has the one of the broker.
type Handler interface {
	// Accept reads the header of a frame. An error closes the connection and is logged.
	Accept(c *Conn, frame []byte) (Header, error)
	// Produce queues a produce request on the caller's goroutine, in call order, and calls r.Answer
	// exactly once, now or later, on any goroutine.
	Produce(r *Request)
	// Serve answers any other request; it may block until ctx ends. An error closes the connection
	// and is logged.
	Serve(ctx context.Context, r *Request) (*frame.Reply, error)
}

// Header is what the server needs of a request's header.
type Header struct {
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      string
	BodyPos       int  // where the body starts in the frame
	Produce       bool // goes to Handler.Produce
}

// Server serves connections from Start to Close.
type Server struct{}

// New checks c; nothing is accepted before Start.
func New(c Config) (*Server, error) { panic("stub") }

// Start accepts connections until Close.
func (s *Server) Start() { panic("stub") }

// Close stops accepting, lets requests under way finish for a bounded time, and closes all connections.
func (s *Server) Close(ctx context.Context) error { panic("stub") }

// Conn is one client's connection, as a handler sees it.
type Conn struct {
	ID       uint64
	Listener string
	Remote   net.Addr
	Local    net.Addr
}

// Request is one request. Its bytes are the frame's, valid until it is answered.
type Request struct {
	Header
	Conn     *Conn
	Body     []byte
	Received time.Time
}

// Answer answers a produce: reply nil sends nothing (acks=0), err closes the connection.
func (r *Request) Answer(reply *frame.Reply, err error) { panic("stub") }
