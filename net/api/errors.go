package api

import (
	"context"
	"errors"
	"fmt"

	"platter/coord/controller"
	"platter/coord/group"
	"platter/coord/group/core"
	"platter/coord/txn"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/disk"
	"platter/io/handles"
	rcore "platter/replication/core"
	"platter/replication/host"
	"platter/replication/replica"
)

// refusal is an error that is made here, with its code and a sentence for the client.
type refusal struct {
	code Code
	text string
}

func (e *refusal) Error() string { return e.text }

func refuse(c Code, format string, args ...any) error {
	return &refusal{c, fmt.Sprintf(format, args...)}
}

// table maps the layers' errors to Kafka's codes, the first match counts. It is the only one: a layer
// below never names a code.
var table = []struct {
	err  error
	code Code
}{
	// Of a coordinator, before those of the partition that it stores to: its errors may wrap them.
	{group.ErrNotCoordinator, NotCoordinator},
	{group.ErrLoading, CoordinatorLoadInProgress},
	{group.ErrNotAvailable, CoordinatorNotAvailable},
	{group.ErrInvalidGroup, InvalidGroupID},
	{group.ErrMetadataTooLarge, OffsetMetadataTooLarge},
	{group.ErrCommitTooLarge, InvalidCommitOffsetSize},
	{group.ErrStateTooLarge, UnknownServerError},
	{core.ErrDead, CoordinatorNotAvailable},
	{core.ErrUnknownMember, UnknownMemberID},
	{core.ErrMemberIDRequired, MemberIDRequired},
	{core.ErrFencedInstance, FencedInstanceID},
	{core.ErrIllegalGeneration, IllegalGeneration},
	{core.ErrInconsistentProtocol, InconsistentGroupProtocol},
	{core.ErrRebalanceInProgress, RebalanceInProgress},
	{core.ErrSessionTimeout, InvalidSessionTimeout},
	{core.ErrGroupFull, GroupMaxSizeReached},
	{core.ErrNonEmpty, NonEmptyGroup},
	{core.ErrNoGroup, GroupIDNotFound},
	{core.ErrSubscribed, GroupSubscribedToTopic},

	{replica.ErrNotLeader, NotLeaderOrFollower},
	{replica.ErrStaleEpoch, StaleControllerEpoch}, // as Kafka's answers to LeaderAndIsr have it
	{rcore.ErrNotReplica, NotLeaderOrFollower},
	{rcore.ErrStaleBroker, NotLeaderOrFollower},
	{replica.ErrUnknownPartition, UnknownTopicOrPartition},
	{replica.ErrFencedEpoch, FencedLeaderEpoch},
	{replica.ErrUnknownEpoch, UnknownLeaderEpoch},
	{replica.ErrNotEnoughReplicas, NotEnoughReplicas},
	{replica.ErrNotEnoughReplicasAfterAppend, NotEnoughReplicasAfterAppend},
	{replica.ErrTimeout, RequestTimedOut},

	{commitlog.ErrOffsetOutOfRange, OffsetOutOfRange},
	{commitlog.ErrClosed, NotLeaderOrFollower}, // deleted or moved: the client asks for metadata again
	{commitlog.ErrOffline, KafkaStorageError},
	{commitlog.ErrHangs, KafkaStorageError}, // retriable, and nothing was written
	{host.ErrHangs, KafkaStorageError},
	{commitlog.ErrOutOfOrderSequence, OutOfOrderSequenceNumber},
	{commitlog.ErrInvalidProducerEpoch, InvalidProducerEpoch},
	{commitlog.ErrTransactional, TransactionalIDAuthorizationFailed}, // fatal, never retriable
	{commitlog.ErrEmpty, InvalidRecord},
	{commitlog.ErrRecordListTooLarge, RecordListTooLarge},
	{commitlog.ErrCorrupt, CorruptMessage},

	{batch.ErrTruncated, CorruptMessage},
	{batch.ErrLength, CorruptMessage},
	{batch.ErrMagic, CorruptMessage},
	{batch.ErrCRC, CorruptMessage},
	{batch.ErrTooLarge, MessageTooLarge},
	{batch.ErrInvalid, InvalidRecord},
	{batch.ErrTimestamp, InvalidTimestamp},
	{batch.ErrCodec, UnsupportedCompressionType},
	{batch.ErrInflate, InvalidRecord}, // the CRC is right: sending it again would not help
	{batch.ErrBomb, MessageTooLarge},
	{batch.ErrKeyRequired, InvalidRecord},

	{controller.ErrNotController, NotController},
	{controller.ErrStaleController, StaleControllerEpoch},
	{controller.ErrStaleBroker, StaleBrokerEpoch},
	{controller.ErrFencedLeader, FencedLeaderEpoch},
	{controller.ErrInvalidUpdate, InvalidUpdateVersion},
	{controller.ErrIneligible, IneligibleReplica},
	{controller.ErrInvalidISR, InvalidRequest},
	{store.ErrOffline, KafkaStorageError},
	{controller.ErrTopicExists, TopicAlreadyExists},
	{controller.ErrUnknownTopic, UnknownTopicOrPartition},
	{controller.ErrUnknownTopicID, UnknownTopicID},
	{controller.ErrInvalidTopic, InvalidTopicException},
	{controller.ErrInvalidPartitions, InvalidPartitions},
	{controller.ErrInvalidReplication, InvalidReplicationFactor},
	{controller.ErrInvalidAssignment, InvalidReplicaAssignment},
	{controller.ErrInvalidConfig, InvalidConfig},
	{controller.ErrDeleteDisabled, TopicDeletionDisabled},
	{controller.ErrReassigning, ReassignmentInProgress},
	{controller.ErrElectionNotNeeded, ElectionNotNeeded},
	{controller.ErrPreferredAway, PreferredLeaderNotAvailable},
	{controller.ErrNoEligibleLeader, EligibleLeadersNotAvailable},
	{controller.ErrTimeout, RequestTimedOut},

	{txn.ErrTransactionalID, TransactionalIDAuthorizationFailed}, // fatal, never retriable
	{txn.ErrInvalidRequest, InvalidRequest},
	{txn.ErrNotReady, CoordinatorNotAvailable},

	{disk.ErrFull, KafkaStorageError},
	{handles.ErrTooManyOpen, KafkaStorageError}, // passes: the client tries again
	{context.DeadlineExceeded, RequestTimedOut},
	{context.Canceled, RequestTimedOut},
}

// codeOf is an error's code; nil is None.
func codeOf(err error) Code {
	if err == nil {
		return None
	}
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	var d *disk.Error
	if errors.As(err, &d) {
		return KafkaStorageError
	}
	return UnknownServerError
}

// textOf is an error's sentence for the client: what it did wrong, but for faults of ours only the code's
// name, since paths and causes on our disks are for the log.
func textOf(err error) *string {
	if err == nil {
		return nil
	}
	s := err.Error()
	switch c := codeOf(err); c {
	case KafkaStorageError:
		s = "the broker's storage failed"
		if errors.Is(err, disk.ErrFull) {
			s = "the broker's disk is full"
		}
	case UnknownServerError, CorruptMessage:
		var d *disk.Error
		if errors.As(err, &d) || c == UnknownServerError {
			s = "the broker failed; its log has the cause"
		}
	}
	return &s
}
