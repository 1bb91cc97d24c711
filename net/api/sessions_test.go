package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

// sessionFetch is a fetch in a session, of the partitions named.
func sessionFetch(id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
	req := fetchRequest("t", [16]byte{}, 0, 0)
	req.SessionID, req.SessionEpoch = id, epoch
	one := req.Topics[0].Partitions[0]
	req.Topics[0].Partitions = nil
	for _, p := range partitions {
		one.Partition = p
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, one)
	}
	if len(partitions) == 0 {
		req.Topics = nil
	}
	return req
}

// answered is what an answer has: partition:bytes, in order; or its error.
func answered(resp *kmsg.FetchResponse) string {
	if resp.ErrorCode != 0 {
		return api.Code(resp.ErrorCode).String()
	}
	var out []string
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			what := "-"
			switch {
			case p.ErrorCode != 0:
				what = api.Code(p.ErrorCode).String()
			case len(p.RecordBatches) > 0:
				what = "records"
			}
			out = append(out, fmt.Sprintf("%d:%s", p.Partition, what))
		}
	}
	return strings.Join(out, " ")
}

func TestFetchSessions(t *testing.T) {
	b := startBroker(t, map[string]string{"max.incremental.fetch.session.cache.slots": "3"})
	b.create("t", 3)
	p := b.dial()
	ask12 := func(req *kmsg.FetchRequest) *kmsg.FetchResponse { return ask[*kmsg.FetchResponse](p, 12, req) }
	expect := func(what string, req *kmsg.FetchRequest, want string) {
		t.Helper()
		if got := answered(ask12(req)); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("no such session", sessionFetch(7, 1), "FETCH_SESSION_ID_NOT_FOUND")
	if resp := ask12(sessionFetch(0, -1, 0)); resp.SessionID != 0 {
		t.Errorf("a session that nobody wanted: %d", resp.SessionID)
	}
	first := ask12(sessionFetch(0, 0, 0, 1, 2))
	if first.SessionID == 0 || answered(first) != "0:- 1:- 2:-" {
		t.Fatalf("a new session: %d, %s", first.SessionID, answered(first))
	}
	id := first.SessionID
	expect("nothing new", sessionFetch(id, 1), "")
	expect("an epoch again", sessionFetch(id, 1), "INVALID_FETCH_SESSION_EPOCH")
	p.produce("t", 1, records(1, "a"))
	expect("records for one", sessionFetch(id, 2), "1:records")
	p.produce("t", 0, records(1, "a"))
	expect("who got records goes last", sessionFetch(id, 3), "0:records 1:records")
	expect("who does not go on gets them again", sessionFetch(id, 4), "0:records 1:records")

	ahead := sessionFetch(id, 5, 0, 1)
	ahead.Topics[0].Partitions[0].FetchOffset, ahead.Topics[0].Partitions[1].FetchOffset = 1, 1
	expect("the fetcher has gone on", ahead, "")
	forget := sessionFetch(id, 6)
	gone := kmsg.NewFetchRequestForgottenTopic()
	gone.Topic, gone.Partitions = "t", []int32{1}
	forget.ForgottenTopics = append(forget.ForgottenTopics, gone)
	expect("one is forgotten", forget, "")
	p.produce("t", 1, records(1, "b"))
	p.produce("t", 2, records(1, "b"))
	expect("the forgotten one is not read", sessionFetch(id, 7), "2:records")
	expect("a partition that is nowhere, each time", sessionFetch(id, 8, 9), "2:records 9:UNKNOWN_TOPIC_OR_PARTITION")
	expect("a partition that is nowhere, again", sessionFetch(id, 9), "9:UNKNOWN_TOPIC_OR_PARTITION 2:records")

	resp := ask[*kmsg.FetchResponse](p, 13, sessionFetch(id, 10))
	code(t, "topics by id in a session by name", resp.ErrorCode, api.FetchSessionTopicIDError)

	second := ask12(sessionFetch(id, 0, 1))
	if second.SessionID == 0 || second.SessionID == id {
		t.Errorf("a session anew: %d after %d", second.SessionID, id)
	}
	expect("the session before it", sessionFetch(id, 10), "FETCH_SESSION_ID_NOT_FOUND")
	ask12(sessionFetch(second.SessionID, -1, 1))
	expect("a session that was closed", sessionFetch(second.SessionID, 1), "FETCH_SESSION_ID_NOT_FOUND")

	for range 3 {
		if ask12(sessionFetch(0, 0, 0)).SessionID == 0 {
			t.Error("no session while there is room")
		}
	}
	if ask12(sessionFetch(0, 0, 0)).SessionID != 0 {
		t.Error("a session beyond the bound, at once")
	}
}

// TestFetchSessionsOfLongNames: names of topics that are not there are kept with a session, so they count too.
func TestFetchSessionsOfLongNames(t *testing.T) {
	b := startBroker(t, map[string]string{"max.incremental.fetch.session.cache.slots": "1000"})
	b.create("t", 1)
	p := b.dial()
	name := strings.Repeat("x", 32_000)
	const each, enough = 1000, 20
	sessions := 0
	for range enough {
		req := sessionFetch(0, 0, 0)
		req.MaxWaitMillis = 0
		for len(req.Topics) < each {
			topic := req.Topics[0]
			topic.Topic = name
			req.Topics = append(req.Topics, topic)
			req.Topics[len(req.Topics)-1].Partitions = []kmsg.FetchRequestTopicPartition{topic.Partitions[0]}
			req.Topics[len(req.Topics)-1].Partitions[0].Partition = int32(len(req.Topics))
		}
		if ask[*kmsg.FetchResponse](p, 12, req).SessionID == 0 {
			break
		}
		sessions++
	}
	if sessions == 0 || sessions == enough {
		t.Errorf("%d sessions with %d names of %d bytes each", sessions, each, len(name))
	}
	if ask[*kmsg.FetchResponse](p, 12, sessionFetch(0, 0, 0)).SessionID == 0 {
		t.Error("no room for a small session is left")
	}
}
