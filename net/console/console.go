// Package console is the broker's HTTP side: /metrics in Prometheus' format with names after Kafka's,
// /health (the process lives) and /ready (it serves; until then how far recovery is).
package console

import (
	"context"
	"log/slog"
	"net"

	"platter/engine/store"
)

// Config is what the console shows.
type Config struct {
	Listener net.Listener
	Metrics  *Metrics
	Progress *store.Progress // recovery, may be nil
	Log      *slog.Logger
}

// Console serves HTTP until Close.
type Console struct{}

// New starts serving at once, so that recovery can be watched.
func New(c Config) *Console { panic("stub") }

// SetReady makes /ready answer 200 (or 503 again, while stopping).
func (c *Console) SetReady(ready bool) { panic("stub") }

// Close stops serving.
func (c *Console) Close(ctx context.Context) error { panic("stub") }
