package tree

import (
	"bytes"
	"slices"

	"platter/coord/zk"
)

// createSession makes a session; of one that is there it changes timeout and password.
func (t *Tree) createSession(e *Entry, b SessionBody) Result {
	if !ofSession(e.Session) {
		return Result{Err: zk.BadArguments}
	}
	s := t.sessions[e.Session]
	if s == nil {
		s = &session{ephemerals: map[string]struct{}{}}
		t.sessions[e.Session] = s
	}
	s.timeoutMs, s.password = b.TimeoutMs, bytes.Clone(b.Password)
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
	delete(t.sessions, e.Session)
	return Result{}
}
