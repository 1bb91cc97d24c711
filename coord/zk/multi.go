package zk

// MultiHeader precedes each operation of a multi and each result. Done ends the list, with Op -1 and
// Err -1.
type MultiHeader struct {
	Op   Op
	Done bool
	Err  Code
}

// Append adds the record's 9 bytes.
func (h MultiHeader) Append(b []byte) []byte {
	return AppendInt32(AppendBool(AppendInt32(b, int32(h.Op)), h.Done), int32(h.Err))
}

// Decode reads the record.
func (h *MultiHeader) Decode(d *Decoder) {
	h.Op, h.Done, h.Err = Op(d.Int32()), d.Bool(), Code(d.Int32())
}

// multiEnd ends a list.
var multiEnd = MultiHeader{Op: OpError, Done: true, Err: -1}

// MultiOp is one operation of a multi. Op says which fields count.
type MultiOp struct {
	Op     Op
	Create CreateRequest  // OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL
	Set    SetDataRequest // OpSetData
	Target DeleteRequest  // OpDelete, OpCheck
}

// MultiRequest is OpMulti's record: {MultiHeader, record}*, end.
type MultiRequest struct{ Ops []MultiOp }

// Append adds the record.
func (r *MultiRequest) Append(b []byte) []byte {
	for i := range r.Ops {
		o := &r.Ops[i]
		b = MultiHeader{Op: o.Op, Err: -1}.Append(b)
		switch o.Op {
		case OpDelete, OpCheck:
			b = o.Target.Append(b)
		case OpSetData:
			b = o.Set.Append(b)
		default:
			b = o.Create.Append(b, o.Op)
		}
	}
	return multiEnd.Append(b)
}

// Decode reads the record; an operation that a multi cannot hold is malformed.
func (r *MultiRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		var h MultiHeader
		if h.Decode(d); h.Done || d.err != nil {
			return
		}
		r.Ops = append(r.Ops, multiOp(d, h.Op))
	}
}

// multiOp reads one operation. What a create makes is said by its flags alone (MultiOperationRecord and Op.create):
// a create2 is a create, and only createTTL can give a node a time to live.
func multiOp(d *Decoder, op Op) MultiOp {
	o := MultiOp{Op: op}
	switch op {
	case OpDelete, OpCheck:
		o.Target.Decode(d)
	case OpSetData:
		o.Set.Decode(d)
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		o.Create.Decode(d, op)
		switch {
		case o.Create.Flags == FlagContainer:
			o.Op = OpCreateContainer
		case op != OpCreateTTL || !o.Create.hasTTL():
			o.Op = OpCreate
		}
	default:
		d.fail()
	}
	return o
}

// Sound reports whether an operation can be tried at all: one that is not is no failure of the multi, it makes the
// whole request malformed once its turn has come.
func (o *MultiOp) Sound() bool { return o.Op != OpCreate || !o.Create.hasTTL() }

// MultiResult is one operation's outcome: with Err not OK an error result, else what Op answers.
type MultiResult struct {
	Op   Op
	Err  Code
	Path string // of a create
	Stat Stat   // of a set, and of a create that answers with a Stat
}

// MultiResponse is OpMulti's answer: {MultiHeader, result}*, end. When the multi failed, every result
// is an error result: OK before the operation that failed, its code at it, RuntimeInconsistency after.
type MultiResponse struct {
	Results []MultiResult
	Failed  bool
}

// Append adds the record.
func (r *MultiResponse) Append(b []byte) []byte {
	for i := range r.Results {
		b = r.Results[i].append(b, r.Failed)
	}
	return multiEnd.Append(b)
}

func (x *MultiResult) append(b []byte, failed bool) []byte {
	if failed {
		return AppendMultiError(b, x.Err)
	}
	switch x.Op {
	case OpSetData:
		return x.Stat.Append(MultiHeader{Op: x.Op}.Append(b))
	case OpDelete, OpCheck:
		return MultiHeader{Op: x.Op}.Append(b)
	case OpCreate:
		return AppendString(MultiHeader{Op: x.Op}.Append(b), x.Path)
	}
	// Whatever else made the node, the answer is create2's (OpResult.CreateResult).
	b = AppendString(MultiHeader{Op: OpCreate2}.Append(b), x.Path)
	return x.Stat.Append(b)
}

// Decode reads the record.
func (r *MultiResponse) Decode(d *Decoder) {
	*r = MultiResponse{}
	for {
		var h MultiHeader
		if h.Decode(d); h.Done || d.err != nil {
			return
		}
		x := MultiResult{Op: h.Op}
		switch h.Op {
		case OpError:
			r.Failed = true
			x.Err = Code(d.Int32())
		case OpSetData:
			x.Stat.Decode(d)
		case OpDelete, OpCheck:
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			if x.Path = d.String(); CreateHasStat(h.Op) {
				x.Stat.Decode(d)
			}
		default:
			d.fail()
			return
		}
		r.Results = append(r.Results, x)
	}
}
