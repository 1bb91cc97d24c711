package store

import (
	"sync"
	"time"

	"platter/io/disk"
)

// spaceWait is how long somebody who asks for a directory's room waits for a disk that does not answer, before it
// gets what was known last.
const spaceWait = 500 * time.Millisecond

// spaceOf asks the file system for a directory's room, one question at a time.
type spaceOf struct {
	mu    sync.Mutex
	last  disk.Space
	asked chan struct{} // closed when the question under way is answered; nil: none is
	since time.Time     // when that was asked
}

// get returns the room as it is now, or, when the disk does not answer for spaceWait, as it was last. A directory that cannot tell its
// room shows as having none: the next write will say why.
func (o *spaceOf) get(ask func() (disk.Space, error)) disk.Space {
	o.mu.Lock()
	if o.asked == nil {
		asked := make(chan struct{})
		o.asked, o.since = asked, time.Now()
		go func() {
			now, _ := ask()
			o.mu.Lock()
			o.last, o.asked = now, nil
			o.mu.Unlock()
			close(asked)
		}()
	}
	asked, patience := o.asked, spaceWait-time.Since(o.since)
	o.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-asked:
	case <-timer.C:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
