package faultdisk

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"platter/io/disk"
)

// opNames are the operations a rule may name. A send is no read: it has its own rules.
var opNames = []string{
	"open", "create", "read", "write", "send", "sync", "truncate", "preallocate", "close",
	"stat", "list", "mkdir", "rename", "remove", "syncdir", "lock", "space",
}

// errorNames are the errors a rule may give. ENOSPC and EDQUOT are disk.ErrFull too.
var errorNames = map[string]error{
	"EIO":    syscall.EIO,
	"ENOSPC": fullError{syscall.ENOSPC},
	"EDQUOT": fullError{syscall.EDQUOT},
	"EROFS":  syscall.EROFS,
	"EACCES": syscall.EACCES,
	"EPERM":  syscall.EPERM,
	"ENOENT": syscall.ENOENT,
	"EEXIST": syscall.EEXIST,
	"EMFILE": syscall.EMFILE,
	"ENFILE": syscall.ENFILE,
	"EAGAIN": syscall.EAGAIN,
	"EINVAL": syscall.EINVAL,
	"EOF":    io.ErrUnexpectedEOF,
	"SHORT":  disk.ErrShortWrite,
	"NOTSUP": disk.ErrUnsupported,
	"LOCKED": disk.ErrLocked,
}

type fullError struct{ errno syscall.Errno }

func (e fullError) Error() string   { return e.errno.Error() }
func (e fullError) Unwrap() []error { return []error{disk.ErrFull, e.errno} }

type action int

const (
	fail    action = iota // with err
	short                 // only bytes bytes, then err
	torn                  // only bytes bytes, but success is claimed
	lost                  // nothing, but success is claimed
	bitflip               // bytes bits
	latency               // delay, then go on
	hang                  // until the script is replaced
)

// suits reports whether the action means something for the operation.
func (a action) suits(op string) bool {
	data := op == "read" || op == "write" || op == "send"
	switch a {
	case short, torn, bitflip:
		return data
	case lost:
		return data || slices.Contains([]string{"sync", "truncate", "preallocate", "mkdir", "rename", "remove", "syncdir"}, op)
	}
	return true
}

// rule is one line of a script.
type rule struct {
	text    string
	ops     []string // nil: all
	pattern string
	after   int64   // matches to let pass first
	every   int64   // of the further ones, the first and then each every-th
	chance  float64 // that one of those fires
	from    int64   // only operations that touch the bytes from..to
	to      int64
	limit   int64 // times it fires; 0 is no limit

	action action
	err    error
	name   string // of err, as written
	bytes  int64
	delay  time.Duration

	matched, fired int64
}

// parse reads a script: a rule a line; empty lines and what follows a # are skipped.
func parse(script string) ([]*rule, error) {
	var rules []*rule
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("fault script line %d (%s): %w", i+1, line, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(line string) (*rule, error) {
	colon := strings.LastIndex(line, ":")
	if colon < 0 {
		return nil, fmt.Errorf("no colon between what it matches and what happens")
	}
	r := &rule{text: line, pattern: "*", every: 1, chance: 1, to: 1<<63 - 1}
	if err := r.parseMatch(strings.Fields(line[:colon])); err != nil {
		return nil, err
	}
	return r, r.parseEffect(strings.Fields(line[colon+1:]))
}

func (r *rule) parseMatch(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("no operation before the colon")
	}
	if words[0] != "*" {
		r.ops = strings.Split(words[0], ",")
		for _, op := range r.ops {
			if !slices.Contains(opNames, op) {
				return fmt.Errorf("unknown operation %q (one of %s)", op, strings.Join(opNames, ", "))
			}
		}
	}
	words = words[1:]
	if len(words) > 0 && !isCondition(words[0]) {
		r.pattern, words = words[0], words[1:]
		if _, err := path.Match(r.pattern, ""); err != nil {
			return fmt.Errorf("bad pattern %q", r.pattern)
		}
	}
	for len(words) > 0 {
		if p, ok := strings.CutPrefix(words[0], "p="); ok {
			f, err := strconv.ParseFloat(p, 64)
			if err != nil || !(f >= 0 && f <= 1) {
				return fmt.Errorf("%q is no probability from 0 to 1", p)
			}
			r.chance, words = f, words[1:]
			continue
		}
		if len(words) < 2 || !isCondition(words[0]) {
			return fmt.Errorf("unknown condition %q (after N, every N, in FROM-TO, p=F)", strings.Join(words, " "))
		}
		if err := r.parseCondition(words[0], words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	return nil
}

func isCondition(word string) bool {
	return word == "after" || word == "every" || word == "in" || strings.HasPrefix(word, "p=")
}

func (r *rule) parseCondition(word, value string) (err error) {
	switch word {
	case "after":
		r.after, err = count(value, 0)
	case "every":
		r.every, err = count(value, 1)
	case "in":
		from, to, ok := strings.Cut(value, "-")
		if !ok {
			return fmt.Errorf("%q is no range FROM-TO of bytes", value)
		}
		if r.from, err = count(from, 0); err == nil && to != "" {
			r.to, err = count(to, r.from+1)
		}
	}
	return err
}

func count(s string, least int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("%q is no whole number from %d", s, least)
	}
	return n, nil
}

func (r *rule) parseEffect(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("nothing happens after the colon")
	}
	what, words := words[0], words[1:]
	words, err := r.parseAction(what, words)
	if err != nil {
		return err
	}
	for _, op := range r.ops {
		if !r.action.suits(op) {
			return fmt.Errorf("%s means nothing for %s", what, op)
		}
	}
	switch {
	case len(words) == 0:
	case len(words) == 1 && words[0] == "once":
		r.limit = 1
	case len(words) == 2 && words[0] == "times":
		if r.limit, err = count(words[1], 1); err != nil {
			return err
		}
	default:
		return fmt.Errorf("cannot make sense of %q (once, times N)", strings.Join(words, " "))
	}
	return nil
}

func (r *rule) parseAction(what string, words []string) (rest []string, err error) {
	number := func() bool {
		if len(words) > 0 {
			if r.bytes, err = count(words[0], 0); err == nil {
				words = words[1:]
				return true
			}
		}
		return false
	}
	switch what {
	case "short", "torn":
		if !number() {
			return nil, fmt.Errorf("%s needs a number of bytes", what)
		}
		r.action = torn
		if what == "short" {
			r.action = short
			if len(words) > 0 && errorNames[words[0]] != nil {
				r.name, words = words[0], words[1:]
			}
			r.err = errorNames[r.name]
		}
	case "bitflip":
		r.action = bitflip
		if !number() {
			r.bytes = 1
		}
	case "latency":
		r.action = latency
		if len(words) == 0 {
			return nil, fmt.Errorf("latency needs a duration")
		}
		if r.delay, err = time.ParseDuration(words[0]); err != nil || r.delay < 0 {
			return nil, fmt.Errorf("%q is no duration", words[0])
		}
		words = words[1:]
	case "lost":
		r.action = lost
	case "hang":
		r.action = hang
	default:
		if r.err = errorNames[what]; r.err == nil {
			return nil, fmt.Errorf("unknown effect %q", what)
		}
		r.action, r.name = fail, what
	}
	return words, nil
}
