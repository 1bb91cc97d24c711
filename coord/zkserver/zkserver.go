// Package zkserver is the embedded, ZooKeeper-compatible coordinator.
package zkserver

import (
	"context"
	"log/slog"
	"net"

	"platter/io/clock"
	"platter/io/disk"
)

// Config is the server's settings, by zoo.cfg's names where it has them.
type Config struct {
	FS             disk.FS
	Clock          clock.Clock
	Dir            string // dataDir
	Addr           string // clientPortAddress:clientPort; port 0 picks one
	TickMs         int    // tickTime
	MaxClientCnxns int    // for each address; 0: no limit
	Log            *slog.Logger
}

// Server is one running coordinator.
type Server struct{}

// Start recovers the tree from snapshot and log and listens.
func Start(ctx context.Context, c Config) (*Server, error) { panic("stub") }

// Addr is where it listens.
func (s *Server) Addr() net.Addr { panic("stub") }

// Close stops listening, drops connections, syncs. Sessions are kept on disk.
func (s *Server) Close() error { panic("stub") }
