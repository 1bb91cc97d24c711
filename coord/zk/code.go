package zk

import "fmt"

// Code is KeeperException's: the Err of a ReplyHeader. As an error it compares with ==.
type Code int32

// Codes.
const (
	OK                           Code = 0
	SystemError                  Code = -1
	RuntimeInconsistency         Code = -2
	DataInconsistency            Code = -3
	ConnectionLoss               Code = -4
	Marshalling                  Code = -5
	Unimplemented                Code = -6
	OperationTimeout             Code = -7
	BadArguments                 Code = -8
	UnknownSession               Code = -12
	NewConfigNoQuorum            Code = -13
	ReconfigInProgress           Code = -14
	APIError                     Code = -100
	NoNode                       Code = -101
	NoAuth                       Code = -102
	BadVersion                   Code = -103
	NoChildrenForEphemerals      Code = -108
	NodeExists                   Code = -110
	NotEmpty                     Code = -111
	SessionExpired               Code = -112
	InvalidCallback              Code = -113
	InvalidACL                   Code = -114
	AuthFailed                   Code = -115
	SessionMoved                 Code = -118
	NotReadOnly                  Code = -119
	EphemeralOnLocalSession      Code = -120
	NoWatcher                    Code = -121
	RequestTimeout               Code = -122
	ReconfigDisabled             Code = -123
	SessionClosedRequireSaslAuth Code = -124
	QuotaExceeded                Code = -125
	ThrottledOp                  Code = -127
)

var codeTexts = map[Code]string{
	OK:                           "ok",
	SystemError:                  "system error",
	RuntimeInconsistency:         "runtime inconsistency",
	DataInconsistency:            "data inconsistency",
	ConnectionLoss:               "connection lost",
	Marshalling:                  "marshalling error",
	Unimplemented:                "unimplemented operation",
	OperationTimeout:             "operation timed out",
	BadArguments:                 "bad arguments",
	UnknownSession:               "unknown session",
	NewConfigNoQuorum:            "no quorum of the new configuration",
	ReconfigInProgress:           "reconfiguration in progress",
	APIError:                     "API error",
	NoNode:                       "no node",
	NoAuth:                       "no permission",
	BadVersion:                   "bad version",
	NoChildrenForEphemerals:      "ephemeral nodes have no children",
	NodeExists:                   "node exists",
	NotEmpty:                     "node has children",
	SessionExpired:               "session expired",
	InvalidCallback:              "invalid callback",
	InvalidACL:                   "invalid ACL",
	AuthFailed:                   "authentication failed",
	SessionMoved:                 "session moved",
	NotReadOnly:                  "not a read-only call",
	EphemeralOnLocalSession:      "ephemeral node on a local session",
	NoWatcher:                    "no such watcher",
	RequestTimeout:               "request timed out",
	ReconfigDisabled:             "reconfiguration is disabled",
	SessionClosedRequireSaslAuth: "session closed: SASL is required",
	QuotaExceeded:                "quota exceeded",
	ThrottledOp:                  "operation throttled",
}

func (c Code) Error() string {
	if s, ok := codeTexts[c]; ok {
		return s
	}
	return fmt.Sprintf("zookeeper error %d", int32(c))
}
