package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"platter/coord/zkclient"
	"platter/io/atomicfile"
	"platter/io/disk"
)

// SessionFile is the file in the session directory that names the coordinator session:
//
//	{"version":1,"session":"0x1000a3f…","password":"base64, 16 bytes"}
//
// It is replaced before the session is used for a registration. Kafka passes over files that it does not
// know in a data directory.
const SessionFile = ".platter_session"

// formerSessionTimeout bounds how long a start spends on ending the session before: past that, the
// registration waits for its expiry.
const formerSessionTimeout = 2 * time.Second

// session is one coordinator session.
type session struct {
	*zkclient.Client
	alive context.Context // until it has expired or is closed, or the node ends
	over  context.CancelFunc
}

type sessionJSON struct {
	Version  int    `json:"version"`
	Session  string `json:"session"`
	Password string `json:"password"`
}

// connect opens a new session.
func (n *Node) connect(ctx context.Context) (*session, error) {
	s := &session{}
	s.alive, s.over = context.WithCancel(n.life)
	zk, err := zkclient.Connect(ctx, zkclient.Config{
		Servers:        n.cfg.Servers,
		Chroot:         n.cfg.Chroot,
		SessionTimeout: n.cfg.SessionTimeout,
		OnState:        func(state zkclient.State) { n.onState(s, state) },
		OnTrouble: func(err error) {
			text := "no coordinator answers; data goes on"
			if !n.started.Load() {
				text = "no coordinator answers yet; trying again"
			}
			n.log(text, "err", err)
		},
	})
	if err != nil {
		s.over()
		return nil, err
	}
	s.Client = zk
	return s, nil
}

// onState notes what became of a session, when it is the one in use; for one that is still to be, see use.
func (n *Node) onState(s *session, state zkclient.State) {
	if state == zkclient.Expired || state == zkclient.Closed {
		s.over()
	}
	if n.zk.Load() != s {
		return
	}
	switch state {
	case zkclient.Disconnected:
		n.raise(disconnected)
	case zkclient.Reconnected:
		n.raise(reconnected)
	case zkclient.Expired:
		n.raise(expired)
	}
}

// use makes s the session in use. It may have expired a moment ago, when nobody cared.
func (n *Node) use(s *session) error {
	n.zk.Store(s)
	if s.alive.Err() != nil {
		return zkclient.ErrSessionExpired
	}
	return nil
}

func (n *Node) sessionPath() string { return filepath.Join(n.cfg.SessionDir, SessionFile) }

// endFormerSession closes the session that this broker had in its former life, so that its registration
// and its controller role go at once. Whatever fails here is made up for by that session's timeout.
func (n *Node) endFormerSession(ctx context.Context) {
	id, password, err := readSession(n.cfg.FS, n.sessionPath())
	if disk.IsNotExist(err) {
		return
	}
	if err == nil {
		err = n.closeSession(ctx, id, password)
	}
	if err != nil && !errors.Is(err, zkclient.ErrSessionExpired) {
		n.log("this broker's former coordinator session was not ended, it has to expire", "err", err)
	}
}

func (n *Node) closeSession(ctx context.Context, id int64, password []byte) error {
	ctx, cancel := context.WithTimeout(ctx, formerSessionTimeout)
	defer cancel()
	zk, err := zkclient.Connect(ctx, zkclient.Config{
		Servers:        n.cfg.Servers,
		SessionTimeout: n.cfg.SessionTimeout,
		SessionID:      id,
		Password:       password,
	})
	if err != nil {
		return err
	}
	return zk.Close()
}

// keepSession writes the session down. Without it only a quick restart suffers, so it is no error.
func (n *Node) keepSession(s *session) {
	id, password := s.Session()
	p, err := json.Marshal(sessionJSON{Version: 1, Session: fmt.Sprintf("0x%x", uint64(id)), Password: base64.StdEncoding.EncodeToString(password)})
	if err == nil {
		err = atomicfile.Write(n.cfg.FS, n.sessionPath(), append(p, '\n'))
	}
	if err != nil {
		n.log("the coordinator session cannot be written down; a restart after a crash will wait for its expiry", "err", err)
	}
}

// forgetSession removes the file of a session that was closed.
func (n *Node) forgetSession() {
	if err := n.cfg.FS.Remove(n.sessionPath()); err != nil && !disk.IsNotExist(err) {
		n.log("the closed coordinator session's file stays", "err", err)
	}
}

func readSession(fs disk.FS, path string) (id int64, password []byte, err error) {
	f, err := fs.Open(path, disk.ReadOnly)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, nil, err
	}
	if size > 4096 {
		return 0, nil, fmt.Errorf("%s: %d bytes are no session", path, size)
	}
	p := make([]byte, size)
	if _, err := f.ReadAt(p, 0); err != nil && size > 0 {
		return 0, nil, err
	}
	return parseSession(path, p)
}

func parseSession(path string, p []byte) (int64, []byte, error) {
	var j sessionJSON
	if err := json.Unmarshal(p, &j); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	id, err := strconv.ParseUint(j.Session, 0, 64)
	if err != nil || j.Version != 1 {
		return 0, nil, fmt.Errorf("%s: version %d, session %.40q", path, j.Version, j.Session)
	}
	password, err := base64.StdEncoding.DecodeString(j.Password)
	if err != nil || len(password) != 16 {
		return 0, nil, fmt.Errorf("%s: the password is no 16 bytes in base64", path)
	}
	return int64(id), password, nil
}
