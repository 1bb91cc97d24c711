package zk

// AuthRequest is OpAuth's record, sent with XidAuth: credentials of a scheme, "user:password" for digest. A
// refusal is AuthFailed, and the end of the connection.
type AuthRequest struct {
	Type   int32 // not used
	Scheme string
	Auth   []byte // borrowed when decoded
}

// Append adds the record.
func (r AuthRequest) Append(b []byte) []byte {
	return AppendBuffer(AppendString(AppendInt32(b, r.Type), r.Scheme), r.Auth)
}

// Decode reads the record.
func (r *AuthRequest) Decode(d *Decoder) {
	r.Type, r.Scheme, r.Auth = d.Int32(), d.String(), d.Buffer()
}

// ReconfigRequest is OpReconfig's record. A server that stands alone refuses it.
type ReconfigRequest struct {
	Joining, Leaving, NewMembers string
	CurConfigID                  int64
}

// Decode reads the record.
func (r *ReconfigRequest) Decode(d *Decoder) {
	r.Joining, r.Leaving, r.NewMembers, r.CurConfigID = d.String(), d.String(), d.String(), d.Int64()
}
