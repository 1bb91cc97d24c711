package zkclient

import (
	"fmt"
	"strings"
	"testing"

	"platter/coord/zk"
)

// TestRearmInterrupted: when a connection goes between two SetWatches, the next one asks for what has happened since
// the last that was whole: an answer to the first says nothing of the second's watches.
func TestRearmInterrupted(t *testing.T) {
	type rearm struct{ conn, paths, since int64 }
	const n = 3
	asked := make(chan rearm, 20)
	states := make(chan State, 20)
	c := connectTo(t, &script{serve: func(conn int, nc *scriptConn) {
		zxid := int64(10 * conn)
		for told := 0; ; {
			q, record, err := nc.next()
			switch {
			case err != nil:
				return
			case q.Op == zk.OpSetWatches:
				d := zk.NewDecoder(record)
				var r zk.SetWatches
				r.Decode(&d, q.Op)
				asked <- rearm{int64(conn), int64(len(r.Data) + len(r.Exist) + len(r.Child)), r.RelativeZxid}
				if told++; conn == 2 && told == 2 {
					return
				}
				nc.reply(q.Xid, zxid, zk.OK, nil)
			case q.Op == zk.OpSync: // that is how a test ends a connection
				return
			default:
				nc.reply(q.Xid, zxid, zk.OK, (&zk.Stat{}).Append)
			}
		}
	}}, Config{OnState: func(s State) { states <- s }})
	ctx := within(t)
	for i := range n {
		must(c.Exists(ctx, fmt.Sprintf("/%s%d", strings.Repeat("x", setWatchesBytes), i), func(Event) {}))(t)
	}
	wantErr(t, c.Sync(ctx, "/"), ErrConnectionLoss)
	for _, s := range []State{Connected, Disconnected, Reconnected, Disconnected, Reconnected} {
		expect(t, states, s)
	}
	for _, want := range []rearm{{2, 1, 10}, {2, 1, 10}, {3, 1, 10}, {3, 1, 10}, {3, 1, 10}} {
		expect(t, asked, want)
	}
	must(c.Exists(ctx, "/", nil))(t)
	wantErr(t, c.Sync(ctx, "/"), ErrConnectionLoss)
	expect(t, asked, rearm{4, 1, 30})
}
