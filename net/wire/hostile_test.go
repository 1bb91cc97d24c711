package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// full is a request of the key with something in every field: one element in each array, down to the
// third level.
func full(key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	fill(reflect.ValueOf(req).Elem(), 0)
	req.SetVersion(version)
	return req
}

func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "UnknownTags" {
				fill(v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if depth < 4 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.String:
		v.SetString("s")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	}
}

// hotOrKmsg decodes a body by whatever is in charge of its key.
func hotOrKmsg(key, version int16, body []byte) error {
	switch key {
	case KeyProduce:
		q := GetProduceRequest()
		defer q.Put()
		return q.Decode(version, body)
	case KeyFetch:
		q := GetFetchRequest()
		defer q.Put()
		return q.Decode(version, body)
	}
	_, err := Decode(key, version, body)
	return err
}

// minVersion is the first version that is decoded here.
func minVersion(key int16) int16 {
	switch key {
	case KeyProduce:
		return 3
	case KeyFetch:
		return 4
	}
	return 0
}

// A length of 2^31-1, at whatever byte, plain or compact, takes no memory: so in every array position of
// every request there is.
func TestAnnouncedLengths(t *testing.T) {
	for key := range int16(kmsg.MaxKey + 1) {
		if kmsg.RequestForKey(key) == nil {
			continue
		}
		for v := minVersion(key); v <= kmsg.RequestForKey(key).MaxVersion(); v++ {
			body := full(key, v).AppendTo(nil)
			if err := hotOrKmsg(key, v, body); err != nil {
				t.Errorf("%s v%d: a full request: %v", KeyName(key), v, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for at := range body {
				p := append([]byte{}, body...)
				if Flexible(key, v) {
					p = append(append(append([]byte{}, body[:at]...), 0xff, 0xff, 0xff, 0xff, 0x07), body[at+1:]...)
				} else if at+4 <= len(p) {
					binary.BigEndian.PutUint32(p[at:], math.MaxInt32)
				}
				err := hotOrKmsg(key, v, p)
				var d *DecodeError
				if err != nil && !errors.As(err, &d) {
					t.Fatalf("%s v%d: %T is not typed: %v", KeyName(key), v, err, err)
				}
			}
			runtime.ReadMemStats(&after)
			if per := int(after.TotalAlloc-before.TotalAlloc) / max(len(body), 1); per > 64<<10 {
				t.Errorf("%s v%d: %d bytes taken for each bad request of %d bytes", KeyName(key), v, per, len(body))
			}
		}
	}
}

// What is decoded takes a bounded multiple of a body's bytes, whatever the body. The worst are arrays of
// the smallest elements.
func TestDecodedSize(t *testing.T) {
	const size = 64 << 10
	for key := range int16(kmsg.MaxKey + 1) {
		if kmsg.RequestForKey(key) == nil {
			continue
		}
		v := kmsg.RequestForKey(key).MaxVersion()
		for _, fillWith := range []byte{0, 1, 2} {
			for head := range 12 {
				// Some head, then a length that says that the rest is elements, then the smallest ones.
				body := make([]byte, size)
				for i := range body {
					body[i] = fillWith
				}
				if Flexible(key, v) {
					binary.PutUvarint(body[head:], size/2)
				} else {
					binary.BigEndian.PutUint32(body[head:], size/2)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_ = hotOrKmsg(key, v, body)
				runtime.ReadMemStats(&after)
				if taken := after.TotalAlloc - before.TotalAlloc; taken > 64*size {
					t.Errorf("%s v%d: %d bytes for a body of %d", KeyName(key), v, taken, size)
				}
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	cases := map[string]struct {
		key, version int16
		body         []byte
		cause        error
	}{
		"unknown key":      {999, 0, nil, ErrUnknownKey},
		"negative key":     {-1, 0, nil, ErrUnknownKey},
		"negative version": {3, -1, nil, ErrVersion},
		"future version":   {3, 99, nil, ErrVersion},
		"empty body":       {3, 0, nil, ErrShort},
		"too large":        {3, 0, make([]byte, BodyBytesMax+1), ErrTooLarge},
	}
	for name, c := range cases {
		if _, err := Decode(c.key, c.version, c.body); !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want %v", name, err, c.cause)
		}
	}
}

// Frames of Produce may be large; the number of partitions in them may not.
func TestTooManyPartitions(t *testing.T) {
	for n, want := range map[int]error{ElementsMax - 1: nil, ElementsMax: ErrTooMany, 1_000_000: ErrTooMany} {
		p := kmsg.NewPtrProduceRequest()
		p.Version = 3
		p.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: make([]kmsg.ProduceRequestTopicPartition, n)}}
		body := p.AppendTo(nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := hotOrKmsg(KeyProduce, 3, body); !errors.Is(err, want) {
			t.Errorf("%d partitions: %v, want %v", n, err, want)
		}
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
			t.Errorf("%d partitions: %d MiB taken", n, taken>>20)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for key := range int16(kmsg.MaxKey + 1) {
		if req := kmsg.RequestForKey(key); req != nil {
			for v := minVersion(key); v <= req.MaxVersion(); v++ {
				f.Add(key, v, full(key, v).AppendTo(nil))
			}
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		if version < minVersion(key) {
			return
		}
		err := hotOrKmsg(key, version, body)
		var d *DecodeError
		if err != nil && !errors.As(err, &d) {
			t.Fatalf("%T is not typed: %v", err, err)
		}
	})
}

// FuzzProduce and FuzzFetch have kmsg as the twin: what is accepted here, kmsg accepts, with the same
// values.
func FuzzProduce(f *testing.F) {
	for v := int16(3); v <= 13; v++ {
		f.Add(v, full(KeyProduce, v).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		if v < 3 || v > 13 {
			return
		}
		q := GetProduceRequest()
		defer q.Put()
		if q.Decode(v, body) != nil {
			return
		}
		k := kmsg.NewPtrProduceRequest()
		k.Version = v
		if err := k.ReadFrom(body); err != nil {
			t.Fatalf("kmsg: %v", err)
		}
		same := q.Acks == k.Acks && q.TimeoutMs == k.TimeoutMillis && len(q.Topics) == len(k.Topics)
		for i := 0; same && i < len(k.Topics); i++ {
			a, b := &q.Topics[i], &k.Topics[i]
			same = a.Name == b.Topic && a.ID == b.TopicID && len(a.Partitions) == len(b.Partitions)
			for j := 0; same && j < len(b.Partitions); j++ {
				same = a.Partitions[j].Partition == b.Partitions[j].Partition &&
					string(a.Partitions[j].Records) == string(b.Partitions[j].Records) &&
					(a.Partitions[j].Records == nil) == (b.Partitions[j].Records == nil)
			}
		}
		if !same {
			t.Fatalf("%+v, kmsg has %+v", q, k)
		}
	})
}

func FuzzFetch(f *testing.F) {
	for v := int16(4); v <= 18; v++ {
		f.Add(v, kmsgFetch(v).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		if v < 4 || v > 18 {
			return
		}
		q := GetFetchRequest()
		defer q.Put()
		if q.Decode(v, body) != nil {
			return
		}
		k := kmsg.NewPtrFetchRequest()
		k.Version = v
		if err := k.ReadFrom(body); err != nil {
			if v >= 12 && v < 18 {
				return // kmsg looks into tags that these versions do not have yet
			}
			t.Fatalf("kmsg: %v", err)
		}
		same := q.MaxWaitMs == k.MaxWaitMillis && q.MinBytes == k.MinBytes && q.MaxBytes == k.MaxBytes && q.Rack == k.Rack &&
			q.SessionID == k.SessionID && q.SessionEpoch == k.SessionEpoch && len(q.Topics) == len(k.Topics) && len(q.Forgotten) == len(k.ForgottenTopics)
		for i := 0; same && i < len(k.Topics); i++ {
			a, b := &q.Topics[i], &k.Topics[i]
			same = a.Name == b.Topic && a.ID == b.TopicID && len(a.Partitions) == len(b.Partitions)
			for j := 0; same && j < len(b.Partitions); j++ {
				x, y := a.Partitions[j], b.Partitions[j]
				same = x.Partition == y.Partition && x.FetchOffset == y.FetchOffset && x.MaxBytes == y.PartitionMaxBytes &&
					x.CurrentLeaderEpoch == y.CurrentLeaderEpoch && x.LogStartOffset == y.LogStartOffset
			}
		}
		if !same {
			t.Fatalf("%+v, kmsg has %+v", q, k)
		}
	})
}
