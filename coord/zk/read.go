package zk

// PathWatchRequest is the record of OpExists, OpGetData, OpGetChildren and OpGetChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Append adds the record.
func (r PathWatchRequest) Append(b []byte) []byte {
	return AppendBool(AppendString(b, r.Path), r.Watch)
}

// Decode reads the record.
func (r *PathWatchRequest) Decode(d *Decoder) { r.Path, r.Watch = d.Path(), d.Bool() }

// PathRecord is OpSync's request and answer, and the request of OpGetAllChildrenNumber (answer: an int32) and
// of OpGetEphemerals (answer: a vector of ustrings, the session's own ephemeral nodes below that prefix).
type PathRecord struct{ Path string }

// Append adds the record.
func (r PathRecord) Append(b []byte) []byte { return AppendString(b, r.Path) }

// Decode reads the record.
func (r *PathRecord) Decode(d *Decoder) { r.Path = d.String() }

// GetDataResponse answers OpGetData; OpExists and OpSetData answer with the Stat alone.
type GetDataResponse struct {
	Data []byte // borrowed when decoded
	Stat Stat
}

// Append adds the record.
func (r *GetDataResponse) Append(b []byte) []byte { return r.Stat.Append(AppendBuffer(b, r.Data)) }

// Decode reads the record.
func (r *GetDataResponse) Decode(d *Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// GetChildrenResponse answers OpGetChildren (names only) and OpGetChildren2. The names' order means
// nothing.
type GetChildrenResponse struct {
	Names []string
	Stat  Stat
}

// Append adds the answer to op.
func (r *GetChildrenResponse) Append(b []byte, op Op) []byte {
	b = AppendStrings(b, r.Names)
	if op == OpGetChildren2 {
		b = r.Stat.Append(b)
	}
	return b
}

// Decode reads the answer to op.
func (r *GetChildrenResponse) Decode(d *Decoder, op Op) {
	r.Names = d.Strings()
	if op == OpGetChildren2 {
		r.Stat.Decode(d)
	}
}
