package api

import (
	"errors"
	"fmt"
	"testing"

	rcore "platter/replication/core"
)

// TestReplicasErrors: what a replica's core refuses has a code that a follower understands, whichever layer says it. A
// fetch may meet the core in the next epoch already.
func TestReplicasErrors(t *testing.T) {
	for err, want := range map[error]Code{
		rcore.ErrFencedEpoch:       FencedLeaderEpoch,
		rcore.ErrUnknownEpoch:      UnknownLeaderEpoch,
		rcore.ErrNotLeader:         NotLeaderOrFollower,
		rcore.ErrNotReplica:        NotLeaderOrFollower,
		rcore.ErrStaleBroker:       NotLeaderOrFollower,
		rcore.ErrStaleEpoch:        StaleControllerEpoch,
		rcore.ErrNotEnoughReplicas: NotEnoughReplicas,
		errors.New("news"):         UnknownServerError,
	} {
		if got := codeOf(fmt.Errorf("t-0: %w", err)); got != want {
			t.Errorf("%v: code %d, want %d", err, got, want)
		}
	}
}
