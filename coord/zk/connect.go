package zk

// PasswordBytes is a session password's length.
const PasswordBytes = 16

// ConnectRequest is a connection's first frame.
//
//	protocolVersion i32 | lastZxidSeen i64 | timeOut i32 | sessionId i64 | passwd buffer | [readOnly bool]
//
// Clients before 3.4 leave readOnly out; HasReadOnly says whether it was there.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeoutMs       int32
	SessionID       int64
	Password        []byte
	HasReadOnly     bool
	ReadOnly        bool
}

// Append adds the record.
func (r ConnectRequest) Append(b []byte) []byte {
	b = AppendInt32(b, r.ProtocolVersion)
	b = AppendInt64(b, r.LastZxidSeen)
	b = AppendInt32(b, r.TimeoutMs)
	b = AppendInt64(b, r.SessionID)
	b = AppendBuffer(b, r.Password)
	if r.HasReadOnly {
		b = AppendBool(b, r.ReadOnly)
	}
	return b
}

// Decode reads the record.
func (r *ConnectRequest) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.LastZxidSeen = d.Int64()
	r.TimeoutMs = d.Int32()
	r.SessionID = d.Int64()
	r.Password = d.Buffer()
	if r.HasReadOnly = d.err == nil && len(d.b) > 0; r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}

// ConnectResponse answers it: 37 bytes when the client sent readOnly, else 36. TimeoutMs 0 and
// SessionID 0: the session has expired, or the password is wrong.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMs       int32
	SessionID       int64
	Password        []byte
	HasReadOnly     bool
	ReadOnly        bool
}

// Append adds the record.
func (r ConnectResponse) Append(b []byte) []byte {
	b = AppendInt32(b, r.ProtocolVersion)
	b = AppendInt32(b, r.TimeoutMs)
	b = AppendInt64(b, r.SessionID)
	b = AppendBuffer(b, r.Password)
	if r.HasReadOnly {
		b = AppendBool(b, r.ReadOnly)
	}
	return b
}

// Decode reads the record.
func (r *ConnectResponse) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.TimeoutMs = d.Int32()
	r.SessionID = d.Int64()
	r.Password = d.Buffer()
	if r.HasReadOnly = d.err == nil && len(d.b) > 0; r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}
