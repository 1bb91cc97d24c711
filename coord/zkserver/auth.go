package zkserver

import (
	"crypto/sha1"
	"encoding/base64"
	"net"
	"slices"
	"strings"

	"platter/coord/tree"
	"platter/coord/zk"
)

// identitiesMax and identityBytesMax bound what one connection can prove to be: all of it stands in each of its
// writes.
const (
	identitiesMax    = 64
	identityBytesMax = 64 << 10
)

// identities are whom the client has authenticated as: its address at first. Nobody changes the slice.
func (c *conn) identities() []zk.ID { return *c.who.Load() }

func (c *conn) addIdentity(id zk.ID) {
	if ids := c.identities(); !slices.Contains(ids, id) {
		ids = append(slices.Clip(ids), id)
		c.who.Store(&ids)
	}
}

func identityBytes(ids []zk.ID) (n int) {
	for i := range ids {
		n += 8 + len(ids[i].Scheme) + len(ids[i].ID)
	}
	return n
}

// firstIdentities are a connection's address, and with skipACL that it may do everything.
func (s *Server) firstIdentities(nc net.Conn) *[]zk.ID {
	host, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	host, _, _ = strings.Cut(host, "%")
	ids := []zk.ID{{Scheme: "ip", ID: host}}
	if s.config.SkipACL {
		ids = append(ids, tree.Super)
	}
	return &ids
}

// digestID is the identity of "user:password" (DigestAuthenticationProvider.generateDigest).
func digestID(auth []byte) string {
	user, _, _ := strings.Cut(string(auth), ":")
	hash := sha1.Sum(auth)
	return user + ":" + base64.StdEncoding.EncodeToString(hash[:])
}

// authenticate answers at once, ahead of requests that wait: they keep the identities that they came with.
func (s *Server) authenticate(c *conn, q *request) error {
	d := zk.NewDecoder(q.body)
	var r zk.AuthRequest
	if r.Decode(&d); d.Err() != nil {
		return d.Err()
	}
	ids := c.identities()
	ok := r.Scheme == "ip" || r.Scheme == "digest" && r.Auth != nil
	if ok = ok && len(ids) < identitiesMax && identityBytes(ids)+len(r.Auth) < identityBytesMax; !ok {
		s.stats.authFailed.Add(1)
		s.log.Warn("coordinator: authentication failed", "peer", c.peer, "scheme", r.Scheme)
		c.header(q.Xid, 0, zk.AuthFailed)
		c.finish()
		return nil
	}
	if r.Scheme == "digest" {
		id := digestID(r.Auth)
		if s.config.SuperDigest != "" && id == s.config.SuperDigest {
			c.addIdentity(tree.Super)
		}
		c.addIdentity(zk.ID{Scheme: "digest", ID: id})
	}
	c.header(q.Xid, 0, zk.OK)
	return nil
}
