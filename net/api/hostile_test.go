package api_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// framed puts a length in front.
func framed(p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)
}

// headed makes a frame of any key and version, with a header of version 1.
func headed(key, version int16, body ...byte) []byte {
	p := binary.BigEndian.AppendUint16(nil, uint16(key))
	p = binary.BigEndian.AppendUint16(p, uint16(version))
	p = binary.BigEndian.AppendUint32(p, 1)
	p = binary.BigEndian.AppendUint16(p, 0xffff) // no client id
	return framed(append(p, body...))
}

var huge = []byte{0x7f, 0xff, 0xff, 0xff}

func TestHostileRequestsCostTheirConnection(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	good := b.dial()
	for name, c := range map[string]struct {
		frame []byte
		cause string
	}{
		"unknown key":               {headed(999, 0), "key 999"},
		"negative key":              {headed(-1, 0), "key -1"},
		"a key of Kafka's":          {headed(int16(kmsg.JoinGroup), 2), "JoinGroup"},
		"a key between brokers":     {headed(int16(kmsg.LeaderAndISR), 2), "LeaderAndISR"},
		"version too new":           {headed(int16(kmsg.Fetch), 19), "Fetch (key 1) version 19"},
		"version too old":           {headed(int16(kmsg.Fetch), 3), "Fetch (key 1) version 3"},
		"negative version":          {headed(int16(kmsg.Metadata), -1), "version -1"},
		"no body":                   {headed(int16(kmsg.Metadata), 5), "Metadata"},
		"client id past the end":    {framed([]byte{0, 3, 0, 5, 0, 0, 0, 1, 0x7f, 0xff, 'x'}), "client id"},
		"2^31 topics":               {headed(int16(kmsg.Metadata), 5, huge...), "Metadata"},
		"2^31 topics to produce":    {headed(int16(kmsg.Produce), 3, append([]byte{0xff, 0xff, 0, 1, 0, 0, 0, 0}, huge...)...), "Produce"},
		"2^31 topics to fetch":      {headed(int16(kmsg.Fetch), 4, append(make([]byte, 17), huge...)...), "Fetch"},
		"2^31 names to delete":      {headed(int16(kmsg.DeleteTopics), 1, huge...), "DeleteTopics"},
		"2^31 topics to list":       {headed(int16(kmsg.ListOffsets), 1, append(make([]byte, 4), huge...)...), "ListOffsets"},
		"2^31 topics to create":     {headed(int16(kmsg.CreateTopics), 2, huge...), "CreateTopics"},
		"2^31 resources":            {headed(int16(kmsg.DescribeConfigs), 1, huge...), "DescribeConfigs"},
		"2^31 bytes of records":     {headed(int16(kmsg.Produce), 3, append([]byte{0xff, 0xff, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0}, huge...)...), "Produce"},
		"a produce that ends early": {headed(int16(kmsg.Produce), 3, 0xff, 0xff, 0), "Produce"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.dialFor(t)
			p.nc.Write(c.frame)
			p.closed()
			for i := 0; !strings.Contains(b.log.String(), c.cause); i++ {
				if i == 200 {
					t.Fatalf("the log does not name %q", c.cause)
				}
				time.Sleep(10 * time.Millisecond)
			}
			good.t = t
			code(t, "a good peer", good.produce("t", 0, records(1, "a")).ErrorCode, api.None)
		})
	}
}

// TestTruncatedRequests cuts good requests at every byte: each is answered or refused, none breaks.
func TestTruncatedRequests(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("c"))
	meta := metadataFor("t")
	for _, c := range []struct {
		version int16
		req     kmsg.Request
	}{
		{3, produceRequest("t", id, 0, 1, records(1, "a"))}, {13, produceRequest("t", id, 0, 1, records(1, "a"))},
		{4, fetchRequest("t", id, 0, 0)}, {17, fetchRequest("t", id, 0, 0)}, {13, meta}, {1, meta},
		{7, listOffsets("t", 0, -1)}, {3, apiVersions()}, {4, describe(kmsg.ConfigResourceTypeTopic, "t", "retention.ms")},
	} {
		c.req.SetVersion(c.version)
		whole := f.AppendRequest(nil, c.req, 1)[4:]
		for n := range whole {
			p := b.dial()
			p.nc.Write(framed(whole[:n]))
			p.nc.(interface{ CloseWrite() error }).CloseWrite()
			for {
				if _, err := p.frame(); err != nil {
					break
				}
			}
			p.nc.Close()
		}
	}
	code(t, "afterwards", b.dial().produce("t", 0, records(1, "a")).ErrorCode, api.None)
}

// TestGarbage flips bytes of good requests, from a seed.
func TestGarbage(t *testing.T) {
	b := startBroker(t, map[string]string{"auto.create.topics.enable": "false"})
	id := b.create("t", 1)
	var good [][]byte
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("c"))
	create := kmsg.NewPtrCreateTopicsRequest()
	create.ValidateOnly = true
	create.Topics = append(create.Topics, kmsg.NewCreateTopicsRequestTopic())
	for _, req := range []kmsg.Request{produceRequest("t", id, 0, 1, records(1, "a")), fetchRequest("t", id, 0, 0), metadataFor("t"),
		listOffsets("t", 0, -1), create, describe(kmsg.ConfigResourceTypeTopic, "t"), kmsg.NewPtrFindCoordinatorRequest()} {
		for v := served[kmsg.Key(req.Key())][0]; v <= served[kmsg.Key(req.Key())][1]; v++ {
			req.SetVersion(v)
			good = append(good, f.AppendRequest(nil, req, 1)[4:])
		}
	}
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for range 1000 {
		p := bytes.Clone(good[r.IntN(len(good))])
		for range 1 + r.IntN(4) {
			p[4+r.IntN(len(p)-4)] = byte(r.Uint32()) // key and version stay: that is how it gets deep
		}
		peer := b.dial()
		peer.nc.Write(framed(p))
		peer.nc.(interface{ CloseWrite() error }).CloseWrite()
		for {
			if _, err := peer.frame(); err != nil {
				break
			}
		}
		peer.nc.Close()
	}
	code(t, fmt.Sprintf("afterwards (seed %d)", seed), b.dial().produce("t", 0, records(1, "a")).ErrorCode, api.None)
}
