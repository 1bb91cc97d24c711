//go:build plantedack

package replica

// plantedAck makes acks=all mean what the leader alone has written: a bug that the tests of clusters have to find.
const plantedAck = true
