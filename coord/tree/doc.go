// Package tree is ZooKeeper's znode tree as a pure state machine: entries in, state, results and
// changes out. It has no clock, no randomness, no socket and no goroutine. Whoever proposes an entry
// stamps zxid, time, session id and password into it, so the same entries give the same tree
// everywhere: on a restart from the log, or on a replica.
//
// Failed requests are entries too: they take a zxid, as in ZooKeeper, and change nothing else.
//
// # What may run at once
//
// Apply, Capture and Load want the tree to themselves. The reads (Get, Exists, Children, ACL, the
// session look-ups) may run beside each other. A Capture is immutable and is written out beside
// Apply; nodes are copied when they are changed for the first time after it. Watches has its own lock.
//
// # Errors
//
// What a client did wrong is a zk.Code in the Result. A malformed entry or snapshot is ErrCorrupt.
// An entry out of zxid order is a bug of the caller and panics.
//
// Rules and their order of checks: PrepRequestProcessor and DataTree of Apache ZooKeeper 3.8.
package tree
