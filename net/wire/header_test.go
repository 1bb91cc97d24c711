package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestHeaderAgainstKmsg(t *testing.T) {
	client := "client"
	for key := range int16(kmsg.MaxKey + 1) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		for v := range req.MaxVersion() + 1 {
			for _, id := range []*string{nil, &client} {
				req := full(key, v)
				var opts []kmsg.RequestFormatterOpt
				if id != nil {
					opts = append(opts, kmsg.FormatterClientID(*id))
				}
				frame := kmsg.NewRequestFormatter(opts...).AppendRequest(nil, req, 42)[4:]
				controlled := key == KeyControlledShutdown && v == 0
				if controlled {
					frame = req.AppendTo(frame) // kmsg forgets the body of this one
				}
				h, body, err := ParseHeader(frame)
				if err != nil {
					t.Fatalf("%s v%d: %v", KeyName(key), v, err)
				}
				if h.Key != key || h.Version != v || h.CorrelationID != 42 || !bytes.Equal(body, req.AppendTo(nil)) {
					t.Errorf("%s v%d: %+v, body of %d bytes", KeyName(key), v, h, len(body))
				}
				if !controlled && id != nil && string(h.ClientID) != client {
					t.Errorf("%s v%d: client id %q", KeyName(key), v, h.ClientID)
				}
				want := []byte{0, 0, 0, 42}
				if req.IsFlexible() && key != KeyApiVersions {
					want = append(want, 0)
				}
				if got := AppendResponseHeader(nil, h); !bytes.Equal(got, want) {
					t.Errorf("%s v%d: response header %v, want %v", KeyName(key), v, got, want)
				}
			}
		}
	}
}

func TestHeaderTags(t *testing.T) {
	frame := []byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 2, 5, 3, 'a', 'b', 'c', 9, 0, 'b', 'o', 'd', 'y'}
	h, body, err := ParseHeader(frame)
	if err != nil || h.ClientID != nil || string(body) != "body" {
		t.Errorf("%+v, body %q, %v", h, body, err)
	}
	for n := range len(frame) - 4 {
		if _, _, err := ParseHeader(frame[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for name, bad := range map[string][]byte{
		"client id of 32767 bytes": {0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 'a'},
		"client id of -2 bytes":    {0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe, 'a'},
		"2^32-1 tags":              {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1},
		"tag of 2^32-1 bytes":      {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1},
		"endless varint":           {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		if _, _, err := ParseHeader(bad); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A key that nobody knows has a header all the same, so that the log can name it.
func TestHeaderOfUnknownKey(t *testing.T) {
	h, body, err := ParseHeader([]byte{3, 0xe7, 0, 0, 0, 0, 0, 1, 0, 1, 'c', 'x'})
	if err != nil || h.Key != 999 || string(h.ClientID) != "c" || string(body) != "x" {
		t.Errorf("%+v, %q, %v", h, body, err)
	}
}

func TestVersions(t *testing.T) {
	var v Versions
	v.Register(KeyProduce, 3, 13)
	v.AdvertiseFrom(KeyProduce, 0)
	v.Register(KeyApiVersions, 0, 4)
	for _, c := range []struct {
		key, version int16
		want         Support
	}{
		{KeyProduce, 2, Refused}, {KeyProduce, 3, Served}, {KeyProduce, 13, Served}, {KeyProduce, 14, Unserved}, {KeyProduce, -1, Unserved},
		{KeyApiVersions, 0, Served}, {KeyApiVersions, 9, Unserved}, {KeyFetch, 4, Unserved}, {-1, 0, Unserved}, {999, 0, Unserved},
	} {
		if got := v.Support(c.key, c.version); got != c.want {
			t.Errorf("key %d, version %d: %v, want %v", c.key, c.version, got, c.want)
		}
	}
	if r, ok := v.Range(KeyProduce); !ok || r != (Range{3, 13}) {
		t.Errorf("%v, %v", r, ok)
	}
	for version := range int16(5) {
		body := v.ApiVersions(version).AppendTo(nil)
		k := kmsg.NewPtrApiVersionsResponse()
		k.Version = version
		if err := k.ReadFrom(body); err != nil {
			t.Fatal(err)
		}
		var got []Range
		for _, a := range k.ApiKeys {
			got = append(got, Range{a.MinVersion, a.MaxVersion})
		}
		if diff := cmp.Diff([]Range{{0, 13}, {0, 4}}, got); diff != "" {
			t.Errorf("v%d: %s", version, diff)
		}
	}
	for name, register := range map[string]func(){
		"twice":            func() { v.Register(KeyProduce, 3, 13) },
		"unknown key":      func() { v.Register(999, 0, 0) },
		"versions unknown": func() { v.Register(KeyFetch, 4, 99) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered", name)
				}
			}()
			register()
		}()
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 2, 5, 3, 'a', 'b', 'c', 9, 0, 'b'})
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0, 1, 'c', 0})
	f.Add([]byte{0, 7, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := ParseHeader(frame)
		if err == nil && len(body)+len(h.ClientID)+8 > len(frame) {
			t.Fatalf("%+v and a body of %d bytes in a frame of %d", h, len(body), len(frame))
		}
	})
}
