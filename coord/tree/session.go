package tree

import (
	"bytes"
	"slices"
)

func (t *Tree) createSession(e *Entry, b SessionBody) Result {
	t.sessions[e.Session] = &session{
		timeoutMs:  b.TimeoutMs,
		password:   bytes.Clone(b.Password),
		ephemerals: map[string]struct{}{},
	}
	t.lastSession = max(t.lastSession, e.Session)
	return Result{}
}

// closeSession ends a session, closed by its client or expired, and deletes its ephemeral nodes, in
// the order of their paths.
func (t *Tree) closeSession(e *Entry) Result {
	paths := slices.Sorted(t.Ephemerals(e.Session))
	for _, p := range paths {
		t.unlink(e, p)
	}
	t.undo = t.undo[:0]
	delete(t.sessions, e.Session)
	return Result{}
}
