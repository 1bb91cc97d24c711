package peer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"platter/coord/controller"
	"platter/engine/commitlog"
	"platter/replication/follow"
	"platter/replication/replica"
)

// known turns the codes that another broker answers with into the errors that it had, as far as somebody here
// tells them apart. It is the reverse of net/api's table.
var known = map[int16]error{
	1:   follow.ErrOutOfRange,
	3:   replica.ErrUnknownPartition,
	6:   replica.ErrNotLeader,
	11:  controller.ErrStaleController,
	41:  controller.ErrNotController,
	42:  controller.ErrInvalidISR,
	56:  commitlog.ErrOffline,
	74:  replica.ErrFencedEpoch,
	75:  replica.ErrUnknownEpoch,
	77:  controller.ErrStaleBroker,
	95:  controller.ErrInvalidUpdate,
	100: controller.ErrUnknownTopicID,
	107: controller.ErrIneligible,
}

// errorOf is nil for code 0.
func errorOf(code int16) error {
	if code == 0 {
		return nil
	}
	if err := known[code]; err != nil {
		return err
	}
	if err := kerr.ErrorForCode(code); err != nil {
		return err
	}
	return fmt.Errorf("error code %d", code)
}
