package zk

// DeleteRequest removes a node without children if Version is its version, or -1. It is also
// OpCheck's record, CheckRequest. The answer is empty.
type DeleteRequest struct {
	Path    string
	Version int32
}

// Append adds the record.
func (r DeleteRequest) Append(b []byte) []byte {
	return AppendInt32(AppendString(b, r.Path), r.Version)
}

// Decode reads the record.
func (r *DeleteRequest) Decode(d *Decoder) { r.Path, r.Version = d.Path(), d.Int32() }

// CheckRequest fails its multi unless the node is there at Version (-1: any).
type CheckRequest = DeleteRequest

// SetDataRequest replaces a node's data if Version is its version, or -1. The answer is a Stat.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Append adds the record.
func (r *SetDataRequest) Append(b []byte) []byte {
	return AppendInt32(AppendBuffer(AppendString(b, r.Path), r.Data), r.Version)
}

// Decode reads the record.
func (r *SetDataRequest) Decode(d *Decoder) {
	r.Path, r.Data, r.Version = d.Path(), d.Buffer(), d.Int32()
}
