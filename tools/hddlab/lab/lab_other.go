//go:build !linux

package lab

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("a disk lab needs Linux: FUSE and loop devices")

// Lab is never made here.
type Lab struct{ Dir, Mount string }

// DaemonArg is the first argument of a daemon.
const DaemonArg = "daemon"

// Check says that this is not Linux.
func Check(string) error { return errLinux }

// Start, Up and Open say that this is not Linux.
func Start(context.Context, string, Config) (*Lab, error) { return nil, errLinux }

// Up is Start.
func Up(context.Context, string, Config) (*Lab, error) { return nil, errLinux }

// Open is Start.
func Open(string) (*Lab, error) { return nil, errLinux }

// Serve is Start.
func Serve(Config, io.Reader, io.Writer) error { return errLinux }

// Sweep finds nothing.
func Sweep() error { return nil }

// Stop, Resume, SetInstant, Stats and Down are never called.
func (l *Lab) Stop() error { return errLinux }

// Resume is Stop.
func (l *Lab) Resume() error { return errLinux }

// SetInstant is Stop.
func (l *Lab) SetInstant(bool) error { return errLinux }

// Stats is Stop.
func (l *Lab) Stats() (Stats, error) { return Stats{}, errLinux }

// Down is Stop.
func (l *Lab) Down(bool) error { return errLinux }

// RealTime does nothing.
func RealTime() {}
