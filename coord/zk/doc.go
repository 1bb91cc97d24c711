// Package zk is ZooKeeper's wire protocol: the jute records of requests, replies and events, one file
// an operation family, and nothing that acts on them.
//
// Every frame on a connection is an int32 length and a body of that many bytes; MaxFrameBytes bounds it
// (jute.maxbuffer). All numbers are big-endian.
//
//	jute type   bytes
//	bool        1 (0 or 1)
//	int, long   4, 8
//	buffer      int32 length n, n bytes; n = -1 is null
//	ustring     as buffer, UTF-8
//	vector      int32 count n, n elements; n = -1 is null
//
// The first frame each way is ConnectRequest and ConnectResponse. After that a request is a
// RequestHeader and the operation's record, an answer a ReplyHeader and, unless its Err is non-zero,
// the operation's record. An event is a ReplyHeader with xid XidEvent and a WatcherEvent.
//
// A record has Append, which adds its bytes to a slice, and Decode, which reads them from a Decoder.
// Decode copies strings; byte slices are borrowed from the Decoder's buffer, and the caller clones
// what it keeps. A Decoder never takes memory on the word of a length that the input does not back.
//
// Source: zookeeper.jute and org.apache.zookeeper.{ZooDefs,KeeperException} of branch 3.9.
package zk

// MaxFrameBytes is jute.maxbuffer's default: the longest body that either side accepts.
const MaxFrameBytes = 0xfffff

// Op is an operation's number in a RequestHeader or MultiHeader.
type Op int32

// Operations.
const (
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11
	OpError                Op = -1
)

// Xids with a meaning of their own.
const (
	XidEvent      int32 = -1
	XidPing       int32 = -2
	XidAuth       int32 = -4
	XidSetWatches int32 = -8
)
