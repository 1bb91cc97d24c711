package zk

// Create flags (CreateMode).
const (
	FlagEphemeral     int32 = 1
	FlagSequential    int32 = 2
	FlagContainer     int32 = 4
	FlagTTL           int32 = 5
	FlagTTLSequential int32 = 6
)

// CreateRequest makes a node: OpCreate, OpCreate2, OpCreateContainer, and with HasTTL OpCreateTTL.
//
//	path ustring | data buffer | acl vector | flags i32 | [ttl i64]
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
	TTLMs int64 // OpCreateTTL only
}

func (r *CreateRequest) hasTTL() bool { return r.Flags == FlagTTL || r.Flags == FlagTTLSequential }

// Append adds the record of op.
func (r *CreateRequest) Append(b []byte, op Op) []byte {
	b = AppendString(b, r.Path)
	b = AppendBuffer(b, r.Data)
	b = AppendACLs(b, r.ACL)
	b = AppendInt32(b, r.Flags)
	if op == OpCreateTTL {
		b = AppendInt64(b, r.TTLMs)
	}
	return b
}

// Decode reads the record of op.
func (r *CreateRequest) Decode(d *Decoder, op Op) {
	r.Path = d.Path()
	r.Data = d.Buffer()
	r.ACL = d.ACLs()
	r.Flags = d.Int32()
	if op == OpCreateTTL {
		r.TTLMs = d.Int64()
	}
}

// CreateResponse is the path with its sequence suffix; all but OpCreate get the Stat too.
type CreateResponse struct {
	Path string
	Stat Stat
}

// CreateHasStat reports whether the answer to a create operation carries a Stat.
func CreateHasStat(op Op) bool { return op != OpCreate }

// Append adds the answer to op.
func (r *CreateResponse) Append(b []byte, op Op) []byte {
	b = AppendString(b, r.Path)
	if CreateHasStat(op) {
		b = r.Stat.Append(b)
	}
	return b
}

// Decode reads the answer to op.
func (r *CreateResponse) Decode(d *Decoder, op Op) {
	r.Path = d.String()
	if CreateHasStat(op) {
		r.Stat.Decode(d)
	}
}
