package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var (
	// ErrFull: the file system or a quota has no room (ENOSPC, EDQUOT, and EFBIG).
	ErrFull = errors.New("no space left on device")
	// ErrClosed: the file was closed before or during the call.
	ErrClosed = errors.New("file is closed")
	// ErrShortWrite: fewer bytes were taken than given, with no other cause named.
	ErrShortWrite = errors.New("short write")
	// ErrUnsupported: this backend or file system has no such operation.
	ErrUnsupported = errors.New("not supported here")
	// ErrLocked: another process holds the lock file.
	ErrLocked = errors.New("locked by another process")
)

// Error is one failed disk operation. Pos is a byte position in the file, or -1.
type Error struct {
	Op   string
	Path string
	Pos  int64
	Err  error
}

func (e *Error) Error() string {
	if e.Pos >= 0 {
		return fmt.Sprintf("%s %s at %d: %v", e.Op, e.Path, e.Pos, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Fail makes the *Error of an operation, nil for a nil err. What the platform reports (a system call's
// error number, an *fs.PathError) is matched to this package's kinds and stays matchable itself; an
// *Error comes back as it is. pos is -1 where the operation has no position.
func Fail(op, path string, pos int64, err error) error {
	if err == nil {
		return nil
	}
	if already := (*Error)(nil); errors.As(err, &already) {
		return err
	}
	return &Error{Op: op, Path: path, Pos: pos, Err: classify(bare(err))}
}

// IsNotExist reports whether err says that the entry is missing.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// kinded is a platform's error together with the kind that callers match.
type kinded struct{ kind, cause error }

func (k kinded) Error() string   { return k.cause.Error() }
func (k kinded) Unwrap() []error { return []error{k.kind, k.cause} }

func classify(err error) error {
	for _, kind := range []error{ErrFull, ErrClosed, ErrShortWrite, ErrUnsupported, ErrLocked} {
		if errors.Is(err, kind) {
			return err
		}
	}
	switch {
	case errors.Is(err, fs.ErrClosed):
		return kinded{ErrClosed, err}
	case errors.Is(err, errors.ErrUnsupported):
		return kinded{ErrUnsupported, err}
	}
	if kind := platformKind(err); kind != nil {
		return kinded{kind, err}
	}
	return err
}

// bare drops the wrappers that would say operation and path a second time.
func bare(err error) error {
	for {
		switch e := err.(type) {
		case *fs.PathError:
			err = e.Err
		case *os.SyscallError:
			err = e.Err
		default:
			return err
		}
	}
}
