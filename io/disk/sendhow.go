package disk

import (
	"fmt"
	"slices"
	"strings"
)

// SendMethod is how File.SendTo moves bytes from a file to a socket.
type SendMethod string

// The methods, as io.send spells them. What the kernel refuses for a file system or a socket is copied.
const (
	// SendAuto is what was measured to be best in general: SendFile, and SendSplice for ranges of
	// SendSpliceBytesMin and more.
	SendAuto SendMethod = "auto"
	// SendCopy reads into a buffer of the process and writes that.
	SendCopy SendMethod = "copy"
	// SendFile is sendfile(2).
	SendFile SendMethod = "sendfile"
	// SendSplice is splice(2), twice: from the file to a pipe and from the pipe to the socket.
	SendSplice SendMethod = "splice"
	// SendMapped writes from a mapping of the file that lives as long as the file is open.
	SendMapped SendMethod = "mapped"
)

// SendMethods are all of them.
var SendMethods = []SendMethod{SendAuto, SendCopy, SendFile, SendSplice, SendMapped}

// SendCopyBytesMax is the size up to which a range is copied by default: below it reading and writing
// beat the methods that stay inside the kernel (measured on loopback).
const SendCopyBytesMax = 64 << 10

// SendPipesMax bounds the pipes that a process has for SendSplice, two descriptors each.
const SendPipesMax = 32

// SendSpliceBytesMin is from where on a pipe that holds 1 MiB beats the one of 64 KiB that sendfile(2) has
// inside: measured, 1.1 times the throughput at 256 KiB, 1.3 times at 1 MiB, for a quarter less CPU time.
const SendSpliceBytesMin = 256 << 10

// SendOptions say how an FS sends.
type SendOptions struct {
	Method SendMethod // "" is SendAuto
	// CopyBytesMax is the size of the largest range that is copied whatever the method is.
	CopyBytesMax int64
}

// SendChooser is an FS that knows more than one way to send. An FS that is none copies.
type SendChooser interface {
	// SetSend chooses for all its files. Called before the first SendTo; a method it does not know is
	// an error.
	SetSend(SendOptions) error
}

// Check refuses methods that nobody knows, and sizes below zero.
func (o SendOptions) Check() error {
	if o.Method != "" && !slices.Contains(SendMethods, o.Method) {
		names := make([]string, len(SendMethods))
		for i, m := range SendMethods {
			names[i] = string(m)
		}
		return fmt.Errorf("method of sending %q: unknown (one of %s)", o.Method, strings.Join(names, ", "))
	}
	if o.CopyBytesMax < 0 {
		return fmt.Errorf("size of the largest range to copy: %d is below 0", o.CopyBytesMax)
	}
	return nil
}

// SetSend tells fs how to send. An FS that can only copy takes SendAuto and SendCopy; any other method
// is ErrUnsupported there, and it copies on.
func SetSend(fs FS, o SendOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	if c, ok := fs.(SendChooser); ok {
		return c.SetSend(o)
	}
	if o.Method == "" || o.Method == SendAuto || o.Method == SendCopy {
		return nil
	}
	return fmt.Errorf("backend %s can only copy, not send by %s: %w", fs.Name(), o.Method, ErrUnsupported)
}
