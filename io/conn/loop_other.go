//go:build !linux

package conn

import "net"

// Loop waits for many sockets on one goroutine; not on this platform.
type Loop struct{}

// NewLoop gives ErrNoLoop.
func NewLoop() (*Loop, error) { return nil, ErrNoLoop }

// Run, Wake, End and Take are never called.
func (l *Loop) Run(func(int) bool) {}

// Wake does nothing.
func (l *Loop) Wake() {}

// End does nothing.
func (l *Loop) End() {}

// Take gives ErrNoLoop.
func (l *Loop) Take(net.Conn, func(bool)) (*Socket, error) { return nil, ErrNoLoop }

// The rest is never called either: there are no sockets.

// Arm gives ErrNoLoop.
func (s *Socket) Arm() error { return ErrNoLoop }

// TryRead gives ErrNoLoop.
func (s *Socket) TryRead([]byte) (int, error) { return 0, ErrNoLoop }

// TryWrite gives ErrNoLoop.
func (s *Socket) TryWrite([]byte) (int, error) { return 0, ErrNoLoop }

// Read gives ErrNoLoop.
func (s *Socket) Read([]byte) (int, error) { return 0, ErrNoLoop }

// Write gives ErrNoLoop.
func (s *Socket) Write([]byte) (int, error) { return 0, ErrNoLoop }

// Close does nothing.
func (s *Socket) Close() error { return nil }

// Free does nothing.
func (s *Socket) Free() {}
