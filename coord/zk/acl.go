package zk

// Permissions of an ACL, as bits.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ID is who an ACL speaks of: {"world","anyone"}, {"digest","user:hash"}, {"ip","10.0.0.0/8"}.
type ID struct {
	Scheme string
	ID     string
}

// ACL gives permissions to an ID.
type ACL struct {
	Perms int32
	ID
}

// WorldAnyone is the ACL that opens a node to all.
func WorldAnyone() []ACL { return []ACL{{PermAll, ID{"world", "anyone"}}} }

// aclBytesMin is an ACL with two empty strings.
const aclBytesMin = 12

// AppendACLs adds a vector of ACLs; nil is null.
func AppendACLs(b []byte, v []ACL) []byte {
	if v == nil {
		return AppendInt32(b, -1)
	}
	b = AppendInt32(b, int32(len(v)))
	for _, a := range v {
		b = AppendInt32(b, a.Perms)
		b = AppendString(AppendString(b, a.Scheme), a.ID.ID)
	}
	return b
}

// ACLs reads a vector of ACLs; null is nil.
func (d *Decoder) ACLs() []ACL {
	n := d.count(aclBytesMin)
	if d.err != nil || n < 0 {
		return nil
	}
	v := make([]ACL, 0, n)
	for range n {
		v = append(v, ACL{d.Int32(), ID{d.word(), d.word()}})
	}
	return v
}

// AppendIDs adds a vector of IDs.
func AppendIDs(b []byte, v []ID) []byte {
	b = AppendInt32(b, int32(len(v)))
	for _, id := range v {
		b = AppendString(AppendString(b, id.Scheme), id.ID)
	}
	return b
}

// IDs reads a vector of IDs; null and empty are nil.
func (d *Decoder) IDs() []ID {
	n := d.count(8)
	if n <= 0 {
		return nil
	}
	v := make([]ID, 0, n)
	for range n {
		v = append(v, ID{d.word(), d.word()})
	}
	return v
}

// GetACLRequest asks for a node's ACL.
type GetACLRequest struct{ Path string }

// Append adds the record.
func (r GetACLRequest) Append(b []byte) []byte { return AppendString(b, r.Path) }

// Decode reads the record.
func (r *GetACLRequest) Decode(d *Decoder) { r.Path = d.Path() }

// GetACLResponse answers it.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Append adds the record.
func (r *GetACLResponse) Append(b []byte) []byte { return r.Stat.Append(AppendACLs(b, r.ACL)) }

// Decode reads the record.
func (r *GetACLResponse) Decode(d *Decoder) {
	r.ACL = d.ACLs()
	r.Stat.Decode(d)
}

// SetACLRequest replaces a node's ACL if Version is its aversion, or -1. The answer is a Stat.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Append adds the record.
func (r SetACLRequest) Append(b []byte) []byte {
	return AppendInt32(AppendACLs(AppendString(b, r.Path), r.ACL), r.Version)
}

// Decode reads the record.
func (r *SetACLRequest) Decode(d *Decoder) {
	r.Path, r.ACL, r.Version = d.Path(), d.ACLs(), d.Int32()
}
