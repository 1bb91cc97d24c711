package zk

// EventType is what happened to a watched node.
type EventType int32

// Event types.
const (
	EventNone            EventType = -1
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// StateSyncConnected is the state that a live connection's events carry.
const StateSyncConnected int32 = 3

// WatcherEvent follows a ReplyHeader with XidEvent.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Append adds the record.
func (e WatcherEvent) Append(b []byte) []byte {
	return AppendString(AppendInt32(AppendInt32(b, int32(e.Type)), e.State), e.Path)
}

// Decode reads the record.
func (e *WatcherEvent) Decode(d *Decoder) {
	e.Type, e.State, e.Path = EventType(d.Int32()), d.Int32(), d.String()
}

// SetWatches re-arms a client's watches after a reconnect, as of the last zxid that it saw. With
// OpSetWatches2 the two vectors of persistent watches follow.
//
//	relativeZxid i64 | data, exist, child vectors | [persistent, persistentRecursive vectors]
type SetWatches struct {
	RelativeZxid        int64
	Data                []string
	Exist               []string
	Child               []string
	Persistent          []string // OpSetWatches2 only
	PersistentRecursive []string // OpSetWatches2 only
}

// Append adds the record of op.
func (r *SetWatches) Append(b []byte, op Op) []byte {
	b = AppendInt64(b, r.RelativeZxid)
	b = AppendStrings(b, r.Data)
	b = AppendStrings(b, r.Exist)
	b = AppendStrings(b, r.Child)
	if op == OpSetWatches2 {
		b = AppendStrings(b, r.Persistent)
		b = AppendStrings(b, r.PersistentRecursive)
	}
	return b
}

// Decode reads the record of op.
func (r *SetWatches) Decode(d *Decoder, op Op) {
	r.RelativeZxid = d.Int64()
	r.Data, r.Exist, r.Child = d.Strings(), d.Strings(), d.Strings()
	if op == OpSetWatches2 {
		r.Persistent, r.PersistentRecursive = d.Strings(), d.Strings()
	}
}

// WatchMode is what kind of watch OpAddWatch sets.
type WatchMode int32

// Modes of OpAddWatch.
const (
	WatchPersistent          WatchMode = 0 // both the node's data and its children, until it is removed
	WatchPersistentRecursive WatchMode = 1 // the node and all below it; no EventChildrenChanged
)

// AddWatchRequest is OpAddWatch's record. The answer is an int32, the code OK.
type AddWatchRequest struct {
	Path string
	Mode WatchMode
}

// Append adds the record.
func (r AddWatchRequest) Append(b []byte) []byte {
	return AppendInt32(AppendString(b, r.Path), int32(r.Mode))
}

// Decode reads the record.
func (r *AddWatchRequest) Decode(d *Decoder) { r.Path, r.Mode = d.String(), WatchMode(d.Int32()) }

// WatcherType is which of a client's watches on a path OpCheckWatches and OpRemoveWatches mean.
type WatcherType int32

// Watcher types.
const (
	WatcherChildren WatcherType = 1
	WatcherData     WatcherType = 2
	WatcherAny      WatcherType = 3
)

// WatchesRequest is the record of OpCheckWatches and OpRemoveWatches. The answer is empty, or NoWatcher.
type WatchesRequest struct {
	Path string
	Type WatcherType
}

// Append adds the record.
func (r WatchesRequest) Append(b []byte) []byte {
	return AppendInt32(AppendString(b, r.Path), int32(r.Type))
}

// Decode reads the record.
func (r *WatchesRequest) Decode(d *Decoder) { r.Path, r.Type = d.String(), WatcherType(d.Int32()) }
