// Package console is the broker's HTTP side, for operators and what they run:
//
//	/metrics  Prometheus' text format, names after Kafka's
//	/health   200 while the process lives
//	/ready    200 when the broker serves clients; until then, and while it stops, 503 with how far
//	          recovery is, as JSON
//	/debug/pprof/  Go's profiles of the process, when Config.Profiles allows them
//
// It is up before the logs are recovered, so that recovery can be watched. It changes nothing, and has
// no password: it listens where the operator says.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"platter/engine/store"
)

// Config is what the console shows.
type Config struct {
	Listener net.Listener // owned by the console
	Metrics  *Metrics
	Progress *store.Progress // recovery, may be nil
	Log      *slog.Logger
	Profiles bool // serve net/http/pprof's profiles
}

// Console serves HTTP until Close.
type Console struct {
	http  *http.Server
	c     Config
	ready atomic.Bool
	left  atomic.Bool // was ready, and is not any more
}

// Bounds of a connection to the console.
const (
	headerWait     = 5 * time.Second
	requestWait    = 10 * time.Second
	answerWait     = time.Minute // a scrape of many partitions over a slow line
	idleWait       = 2 * time.Minute
	headerBytesMax = 16 << 10
	scrapesMax     = 4 // at once; each walks all partitions
)

// New starts serving at once.
func New(c Config) *Console {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	k := &Console{c: c}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.Metrics.Registry(), promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesMax,
		ErrorLog:            slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /health", k.health)
	mux.HandleFunc("GET /ready", k.answerReady)
	if c.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // heap, goroutine, mutex and so on by their names
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /{$}", k.index)
	k.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerWait, ReadTimeout: requestWait, WriteTimeout: answerWait,
		IdleTimeout: idleWait, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	c.Metrics.brokerState(k.state)
	go func() {
		if err := k.http.Serve(c.Listener); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("console stopped", "err", err)
		}
	}()
	return k
}

// SetReady makes /ready answer 200, or 503 again while the broker stops.
func (k *Console) SetReady(ready bool) {
	if k.ready.Swap(ready) && !ready {
		k.left.Store(true)
	}
}

// Close stops serving; requests under way may finish until ctx ends.
func (k *Console) Close(ctx context.Context) error {
	if err := k.http.Shutdown(ctx); err != nil {
		k.http.Close()
		return err
	}
	return nil
}

// Kafka's broker states.
const (
	stateStarting   = 1
	stateRecovery   = 2
	stateRunning    = 3
	stateShutDown   = 6
	nameStarting    = "starting"
	nameRecovery    = "recovering"
	nameRunning     = "running"
	nameShutDown    = "stopping"
	contentTypeJSON = "application/json"
)

func (k *Console) state() (number int, name string) {
	p := k.c.Progress
	switch {
	case k.ready.Load():
		return stateRunning, nameRunning
	case k.left.Load():
		return stateShutDown, nameShutDown
	case p != nil:
		if now := p.Snapshot(); now.LogsDone < now.LogsTotal {
			return stateRecovery, nameRecovery
		}
	}
	return stateStarting, nameStarting
}

// readiness is what /ready says.
type readiness struct {
	State    string    `json:"state"`
	Recovery *recovery `json:"recovery,omitempty"`
}

type recovery struct {
	LogsTotal    int64 `json:"logs_total"`
	LogsDone     int64 `json:"logs_done"`
	BytesToScan  int64 `json:"bytes_to_scan"`
	BytesScanned int64 `json:"bytes_scanned"`
}

func (k *Console) answerReady(w http.ResponseWriter, _ *http.Request) {
	number, name := k.state()
	r := readiness{State: name}
	if p := k.c.Progress; p != nil {
		now := recovery(p.Snapshot())
		r.Recovery = &now
	}
	code := http.StatusOK
	if number != stateRunning {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, r)
}

func (k *Console) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"alive"})
}

func (k *Console) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Platter\n\n/metrics\n/health\n/ready\n"))
}

// writeJSON answers; a peer that is gone is no news.
func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", contentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
