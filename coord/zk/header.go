package zk

// RequestHeader starts every request but the first.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// Append adds the record's 8 bytes.
func (h RequestHeader) Append(b []byte) []byte {
	return AppendInt32(AppendInt32(b, h.Xid), int32(h.Op))
}

// Decode reads the record.
func (h *RequestHeader) Decode(d *Decoder) { h.Xid, h.Op = d.Int32(), Op(d.Int32()) }

// ReplyHeaderBytes is a ReplyHeader's size.
const ReplyHeaderBytes = 16

// ReplyHeader starts every answer and event. With a non-zero Err no record follows.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// Append adds the record's 16 bytes.
func (h ReplyHeader) Append(b []byte) []byte {
	return AppendInt32(AppendInt64(AppendInt32(b, h.Xid), h.Zxid), int32(h.Err))
}

// Decode reads the record.
func (h *ReplyHeader) Decode(d *Decoder) {
	h.Xid, h.Zxid, h.Err = d.Int32(), d.Int64(), Code(d.Int32())
}
