package commitlog

import "fmt"

// GoOffline makes the log serve nothing any more: its data directory has failed elsewhere. OnIOError is not
// called. A log that is closed or offline stays as it is.
func (l *Log) GoOffline(cause error) {
	offline := fmt.Errorf("%w: %w", ErrOffline, cause)
	l.failed.CompareAndSwap(nil, &offline)
}
