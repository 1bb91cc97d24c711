// Package zkclient is the broker's ZooKeeper client, on the wire records of coord/zk: one session,
// pipelined requests, one-shot watches, re-attach after a lost connection, reconnect at once.
package zkclient

import (
	"context"
	"errors"
	"time"
)

// Errors by ZooKeeper's codes (KeeperException).
var (
	ErrNoNode         = errors.New("no node")
	ErrNodeExists     = errors.New("node exists")
	ErrBadVersion     = errors.New("bad version")
	ErrNotEmpty       = errors.New("node has children")
	ErrSessionExpired = errors.New("session expired")
	ErrConnectionLoss = errors.New("connection lost") // the outcome is unknown
	ErrClosed         = errors.New("client is closed")
	ErrNoAuth         = errors.New("no permission")
)

// Config says whom to talk to.
type Config struct {
	Servers        []string // host:port; tried in turn
	Chroot         string   // "" or "/path", created when missing
	SessionTimeout time.Duration
	// SessionID and Password re-attach an earlier session; zero: a new one.
	SessionID int64
	Password  []byte
	// OnState is called, in order, on the client's own goroutine: do not block.
	OnState func(State)
	// Dial replaces the dialer (tests, TLS).
	Dial func(ctx context.Context, addr string) (Conn, error)
}

// Conn is what the client needs of a connection (net.Conn has it).
type Conn interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
	SetDeadline(time.Time) error
}

// State is the session's.
type State int

// States. After Reconnected the same session lives on, but watches that fired meanwhile were re-armed
// by SetWatches: re-read what you depend on. After Expired the client is dead: make a new one.
const (
	Disconnected State = iota
	Connected
	Reconnected
	Expired
	Closed
)

// Stat is a znode's (68 bytes on the wire).
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Event is one watch that fired.
type Event struct {
	Type EventType
	Path string
}

// EventType as on the wire; SessionLost replaces all when the session ends.
type EventType int32

// Event types.
const (
	NodeCreated         EventType = 1
	NodeDeleted         EventType = 2
	NodeDataChanged     EventType = 3
	NodeChildrenChanged EventType = 4
	SessionLost         EventType = -1
)

// CreateMode is the create flags.
type CreateMode int32

// Modes.
const (
	Persistent           CreateMode = 0
	Ephemeral            CreateMode = 1
	PersistentSequential CreateMode = 2
	EphemeralSequential  CreateMode = 3
)

// Client is safe for concurrent use. Requests go out in call order.
type Client struct{}

// Connect dials until a session is there or ctx ends.
func Connect(ctx context.Context, c Config) (*Client, error) { panic("stub") }

// Session is what Config.SessionID and Password re-attach.
func (c *Client) Session() (id int64, password []byte) { panic("stub") }

// Create makes a node, open to all (world:anyone); it returns the path with the sequence suffix.
func (c *Client) Create(ctx context.Context, path string, data []byte, m CreateMode) (string, error) {
	panic("stub")
}

// Delete removes a node; version -1 matches all.
func (c *Client) Delete(ctx context.Context, path string, version int32) error { panic("stub") }

// Exists gives the Stat, or ErrNoNode. watch (nil: none) gets one event; set for a missing node too.
func (c *Client) Exists(ctx context.Context, path string, watch func(Event)) (Stat, error) {
	panic("stub")
}

// Get reads a node; the bytes are the caller's.
func (c *Client) Get(ctx context.Context, path string, watch func(Event)) ([]byte, Stat, error) {
	panic("stub")
}

// GetMany reads many nodes, pipelined; a missing one has Err ErrNoNode.
func (c *Client) GetMany(ctx context.Context, paths []string) ([]Node, error) { panic("stub") }

// Node is one answer of GetMany.
type Node struct {
	Path string
	Data []byte
	Stat Stat
	Err  error
}

// Set writes a node; version -1 matches all.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	panic("stub")
}

// Children lists names, sorted.
func (c *Client) Children(ctx context.Context, path string, watch func(Event)) ([]string, Stat, error) {
	panic("stub")
}

// Op is one operation of a Multi: made by CreateOp, DeleteOp, SetOp, CheckOp.
type Op struct {
	kind    int32
	path    string
	data    []byte
	version int32
	mode    CreateMode
}

// Constructors of Op.
func CreateOp(path string, data []byte, m CreateMode) Op { return Op{} }
func DeleteOp(path string, version int32) Op             { return Op{} }
func SetOp(path string, data []byte, version int32) Op   { return Op{} }
func CheckOp(path string, version int32) Op              { return Op{} }

// Result is one operation's outcome.
type Result struct {
	Path string // of a create
	Stat Stat   // of a set
	Err  error
}

// Multi does all or nothing. On failure err is the first failing operation's, and Results say which.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) { panic("stub") }

// Ensure creates a persistent node and its missing parents; an existing one is no error.
func (c *Client) Ensure(ctx context.Context, path string, data []byte) error { panic("stub") }

// Close ends the session (its ephemeral nodes go) and the connection.
func (c *Client) Close() error { panic("stub") }

// Drop closes the connection and leaves the session to its timeout.
func (c *Client) Drop() { panic("stub") }
