package zk

// MultiReadOp is one read of an OpMultiRead: OpGetData or OpGetChildren.
type MultiReadOp struct {
	Op Op
	PathWatchRequest
}

// MultiReadRequest is OpMultiRead's record: {MultiHeader, record}*, end. It is answered read by read; one that
// fails does not touch the others.
type MultiReadRequest struct{ Ops []MultiReadOp }

// Append adds the record.
func (r *MultiReadRequest) Append(b []byte) []byte {
	for _, o := range r.Ops {
		b = o.PathWatchRequest.Append(MultiHeader{Op: o.Op, Err: -1}.Append(b))
	}
	return multiEnd.Append(b)
}

// Decode reads the record. Operations that a multi can hold, but that are no reads, come with their Op alone: the
// server answers Marshalling. Both kinds together are malformed, as any other operation is.
func (r *MultiReadRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		var h MultiHeader
		if h.Decode(d); h.Done || d.err != nil {
			return
		}
		if len(r.Ops) > 0 && r.Ops[0].Op.isRead() != h.Op.isRead() {
			d.fail()
			return
		}
		o := MultiReadOp{Op: h.Op}
		switch h.Op {
		case OpGetData, OpGetChildren:
			o.PathWatchRequest.Decode(d)
		case OpDelete, OpCheck, OpSetData, OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			multiOp(d, h.Op)
		default:
			d.fail()
			return
		}
		r.Ops = append(r.Ops, o)
	}
}

func (op Op) isRead() bool { return op == OpGetData || op == OpGetChildren }

// MultiReadResult is one read's outcome. With Err OK it is what Op answers.
type MultiReadResult struct {
	Op    Op
	Err   Code
	Data  []byte   // OpGetData; borrowed when decoded
	Stat  Stat     // OpGetData
	Names []string // OpGetChildren
}

// MultiReadResponse is OpMultiRead's answer: {MultiHeader, result}*, end.
type MultiReadResponse struct{ Results []MultiReadResult }

// AppendMultiError adds an error result to the answer to a multi.
func AppendMultiError(b []byte, code Code) []byte {
	return AppendInt32(MultiHeader{Op: OpError, Err: code}.Append(b), int32(code))
}

// AppendMultiEnd ends a multi's request or answer.
func AppendMultiEnd(b []byte) []byte { return multiEnd.Append(b) }

// Decode reads the record.
func (r *MultiReadResponse) Decode(d *Decoder) {
	r.Results = nil
	for {
		var h MultiHeader
		if h.Decode(d); h.Done || d.err != nil {
			return
		}
		x := MultiReadResult{Op: h.Op}
		switch h.Op {
		case OpError:
			x.Err = Code(d.Int32())
		case OpGetData:
			var g GetDataResponse
			g.Decode(d)
			x.Data, x.Stat = g.Data, g.Stat
		case OpGetChildren:
			x.Names = d.Strings()
		default:
			d.fail()
			return
		}
		r.Results = append(r.Results, x)
	}
}
