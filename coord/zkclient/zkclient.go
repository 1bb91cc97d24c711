// Package zkclient is the broker's ZooKeeper client, on the wire records of coord/zk: one session,
// pipelined requests, one-shot and persistent watches, re-attach after a lost connection, reconnect at once.
//
// # What may run at once
//
// A Client is safe for concurrent use. Requests of one goroutine go out in the order of its calls.
// State and watch callbacks run one after the other, in the order in which the server told of them, on
// one goroutine that belongs to the client; they may call the client, but while one blocks the others
// wait.
//
// # Errors
//
// An error wraps one of the sentinels below, or a zk.Code that has none, with operation and path; or
// it is the context's. A request that is in flight when the connection is lost ends with
// ErrConnectionLoss: it may have been done or not. A request made while there is no connection waits
// for one until its context ends.
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
	ErrAuthFailed     = errors.New("authentication failed")
	ErrTooLarge       = errors.New("request is larger than jute.maxbuffer")
	ErrNoWatcher      = errors.New("no such watch")
)

// Config says whom to talk to.
type Config struct {
	Servers []string // host:port; tried in turn
	Chroot  string   // "" or "/path", created when missing
	// ChrootMustExist makes Connect fail with ErrNoNode where the chroot is missing, instead of creating it.
	ChrootMustExist bool
	SessionTimeout  time.Duration
	// SessionID and Password re-attach an earlier session; zero: a new one.
	SessionID int64
	Password  []byte
	// OnState is called, in order, on the client's own goroutine: do not block.
	OnState func(State)
	// OnTrouble is told, about a second after a loss and then every half a minute, why no server has given the
	// session back, or why none keeps the connection that it gave. It must not block either.
	OnTrouble func(error)
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

// EventType as on the wire; SessionLost replaces all when the session ends, Missed stands for events of a
// persistent watch that were lost: its callback was too slow, or there was no connection.
type EventType int32

// Event types.
const (
	NodeCreated         EventType = 1
	NodeDeleted         EventType = 2
	NodeDataChanged     EventType = 3
	NodeChildrenChanged EventType = 4
	SessionLost         EventType = -1
	Missed              EventType = -2
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
