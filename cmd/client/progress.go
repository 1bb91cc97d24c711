package client

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows on a terminal how far a command is; where there is no terminal it shows nothing. A nil
// Progress is one that shows nothing.
type Progress struct {
	bar  *progressbar.ProgressBar
	done int64
	next int64
}

// IsTerminal reports whether w (or r) is a terminal that a person looks at.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// NewProgress makes one on w; total below 0: nobody knows how much there is.
func NewProgress(w io.Writer, total int64, bytes bool) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	opts := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(total >= 0),
		progressbar.OptionClearOnFinish(),
	}
	if bytes {
		opts = append(opts, progressbar.OptionShowBytes(true))
	} else {
		opts = append(opts, progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"))
	}
	return &Progress{bar: progressbar.NewOptions64(total, opts...)}
}

// Add counts n more. The bar looks at the clock each time, so it is told in steps only.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.done += n
	if p.done >= p.next {
		p.next = p.done + max(1, p.done/1000)
		_ = p.bar.Set64(p.done)
	}
}

// End removes it.
func (p *Progress) End() {
	if p != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}
