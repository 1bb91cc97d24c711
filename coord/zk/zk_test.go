package zk

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"
)

// record is what every record of the package can do, once its operation is bound.
type record struct {
	name   string
	append func([]byte) []byte
	decode func(*Decoder) func([]byte) []byte // decodes into a new record, and gives its Append
}

var stat = Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}

func plain[T any, P interface {
	*T
	Append([]byte) []byte
	Decode(*Decoder)
}](name string, v T) record {
	return record{name, P(&v).Append, func(d *Decoder) func([]byte) []byte {
		r := P(new(T))
		r.Decode(d)
		return r.Append
	}}
}

func ofOp[T any, P interface {
	*T
	Append([]byte, Op) []byte
	Decode(*Decoder, Op)
}](name string, op Op, v T) record {
	return record{name, func(b []byte) []byte { return P(&v).Append(b, op) }, func(d *Decoder) func([]byte) []byte {
		r := P(new(T))
		r.Decode(d, op)
		return func(b []byte) []byte { return r.Append(b, op) }
	}}
}

// records are one of each, with every field set.
func records() []record {
	acls := []ACL{{PermAll, ID{"world", "anyone"}}, {PermRead, ID{"digest", "u:h"}}}
	create := CreateRequest{"/a", []byte("data"), acls, 3, 9}
	lasting := create
	lasting.Flags = FlagTTL
	multi := MultiRequest{[]MultiOp{
		{Op: OpCreate, Create: create}, {Op: OpCreateTTL, Create: lasting}, {Op: OpDelete, Target: DeleteRequest{"/d", 3}},
		{Op: OpSetData, Set: SetDataRequest{"/s", nil, 4}}, {Op: OpCheck, Target: DeleteRequest{"/c", -1}},
	}}
	results := MultiResponse{Results: []MultiResult{
		{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/b", Stat: stat}, {Op: OpDelete}, {Op: OpSetData, Stat: stat}, {Op: OpCheck},
	}}
	failed := MultiResponse{Failed: true, Results: []MultiResult{
		{Op: OpError}, {Op: OpError, Err: BadVersion}, {Op: OpError, Err: RuntimeInconsistency},
	}}
	watches := SetWatches{7, []string{"/a"}, []string{"/b", "/c"}, []string{"/d"}, []string{"/e"}, []string{"/f"}}
	return []record{
		plain("RequestHeader", RequestHeader{1, OpPing}),
		plain("ReplyHeader", ReplyHeader{1, 2, NoNode}),
		plain("ConnectRequest", ConnectRequest{0, 1, 2, 3, []byte("pw"), true, true}),
		plain("ConnectRequest", ConnectRequest{0, 1, 2, 3, nil, false, false}),
		plain("ConnectResponse", ConnectResponse{0, 1, 2, []byte("pw"), true, false}),
		plain("Stat", stat),
		ofOp("CreateRequest", OpCreate, create),
		ofOp("CreateRequest", OpCreateTTL, create),
		ofOp("CreateResponse", OpCreate, CreateResponse{"/a", stat}),
		ofOp("CreateResponse", OpCreate2, CreateResponse{"/a", stat}),
		plain("DeleteRequest", DeleteRequest{"/a", 1}),
		plain("SetDataRequest", SetDataRequest{"/a", []byte{}, 1}),
		plain("PathWatchRequest", PathWatchRequest{"/a", true}),
		plain("PathRecord", PathRecord{"/a"}),
		plain("GetDataResponse", GetDataResponse{[]byte("x"), stat}),
		ofOp("GetChildrenResponse", OpGetChildren, GetChildrenResponse{[]string{"a", "b"}, stat}),
		ofOp("GetChildrenResponse", OpGetChildren2, GetChildrenResponse{[]string{"a", "b"}, stat}),
		plain("GetACLRequest", GetACLRequest{"/a"}),
		plain("GetACLResponse", GetACLResponse{acls, stat}),
		plain("SetACLRequest", SetACLRequest{"/a", acls, 2}),
		plain("MultiRequest", multi),
		plain("MultiResponse", results),
		plain("MultiResponse", failed),
		plain("WatcherEvent", WatcherEvent{EventDeleted, 3, "/a"}),
		ofOp("SetWatches", OpSetWatches, watches),
		ofOp("SetWatches", OpSetWatches2, watches),
	}
}

func TestRoundTrip(t *testing.T) {
	for _, r := range records() {
		want := r.append(nil)
		d := NewDecoder(want)
		again := r.decode(&d)(nil)
		if d.Err() != nil || len(d.Rest()) != 0 || !bytes.Equal(again, want) {
			t.Errorf("%s: %x became %x (%v, %d bytes left)", r.name, want, again, d.Err(), len(d.Rest()))
		}
		for n := range want {
			d := NewDecoder(want[:n])
			if r.decode(&d); d.Err() == nil && r.name != "ConnectRequest" && r.name != "ConnectResponse" {
				t.Errorf("%s: the first %d of %d bytes pass for a record", r.name, n, len(want))
			}
		}
	}
}

// TestBytes pins records to bytes that a real server sent or took (zkprobe against ZooKeeper 3.8.0).
func TestBytes(t *testing.T) {
	failed := MultiResponse{Failed: true, Results: []MultiResult{{}, {Err: BadVersion}, {Err: RuntimeInconsistency}}}
	for want, got := range map[string][]byte{
		"ffffffff000000000000000000ffffffff00ffffff99ffffff99ffffffff00fffffffefffffffeffffffff01ffffffff": failed.Append(nil),
		"ffffffff01ffffffff": (&MultiResponse{}).Append(nil),
		"ffffffff":           AppendBuffer(nil, nil),
		"00000000":           AppendBuffer(nil, []byte{}),
		"0000000178":         AppendString(nil, "x"),
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("got %x, want %s", got, want)
		}
	}
	if n := len((ConnectResponse{Password: make([]byte, PasswordBytes), HasReadOnly: true}).Append(nil)); n != 37 {
		t.Errorf("ConnectResponse of %d bytes", n)
	}
	if n := len(stat.Append(nil)); n != StatBytes {
		t.Errorf("Stat of %d bytes", n)
	}
}

func TestLyingLengths(t *testing.T) {
	lies := [][]byte{
		{0x7f, 0xff, 0xff, 0xff}, {0, 0, 0, 5, 'a'}, {0x10, 0, 0, 0, 0, 0, 0, 0},
	}
	for _, b := range [][]byte{{0xff, 0xff, 0xff, 0xfe}, {0x80, 0, 0, 0}} {
		d := NewDecoder(b)
		if d.Buffer(); d.Err() == nil {
			t.Errorf("buffer of %x is none", b)
		}
		d = NewDecoder(b)
		if v := d.ACLs(); v == nil || len(v) > 0 || d.Err() != nil { // as in Java
			t.Errorf("acls of %x: %v, %v", b, v, d.Err())
		}
	}
	for _, b := range lies {
		for name, read := range map[string]func(*Decoder) any{
			"buffer":  func(d *Decoder) any { return d.Buffer() },
			"strings": func(d *Decoder) any { return d.Strings() },
			"acls":    func(d *Decoder) any { return d.ACLs() },
			"ids":     func(d *Decoder) any { return d.IDs() },
		} {
			d := NewDecoder(b)
			if v := read(&d); d.Err() == nil || !reflect.ValueOf(v).IsZero() && reflect.ValueOf(v).Len() > 0 {
				t.Errorf("%s of %x: %v, %v", name, b, v, d.Err())
			}
		}
	}
}

// FuzzRecords: any bytes are a record or an error, and a record's own bytes are read back the same.
func FuzzRecords(f *testing.F) {
	all := records()
	for i, r := range all {
		f.Add(uint8(i), r.append(nil))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		r := all[int(which)%len(all)]
		d := NewDecoder(b)
		first := r.decode(&d)
		if d.Err() != nil {
			return
		}
		want := first(nil)
		d = NewDecoder(want)
		again := r.decode(&d)(nil)
		if d.Err() != nil || !bytes.Equal(again, want) {
			t.Fatalf("%s: %x read back as %x (%v)", r.name, want, again, d.Err())
		}
	})
}
