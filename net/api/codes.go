package api

import "strconv"

// Code is one of Kafka's error codes (org.apache.kafka.common.protocol.Errors).
type Code int16

// The codes that Platter answers with.
const (
	UnknownServerError                 Code = -1
	None                               Code = 0
	OffsetOutOfRange                   Code = 1
	CorruptMessage                     Code = 2
	UnknownTopicOrPartition            Code = 3
	LeaderNotAvailable                 Code = 5
	NotLeaderOrFollower                Code = 6
	RequestTimedOut                    Code = 7
	MessageTooLarge                    Code = 10
	StaleControllerEpoch               Code = 11
	OffsetMetadataTooLarge             Code = 12
	CoordinatorLoadInProgress          Code = 14
	CoordinatorNotAvailable            Code = 15
	NotCoordinator                     Code = 16
	InvalidTopicException              Code = 17
	RecordListTooLarge                 Code = 18
	NotEnoughReplicas                  Code = 19
	NotEnoughReplicasAfterAppend       Code = 20
	InvalidRequiredAcks                Code = 21
	IllegalGeneration                  Code = 22
	InconsistentGroupProtocol          Code = 23
	InvalidGroupID                     Code = 24
	UnknownMemberID                    Code = 25
	InvalidSessionTimeout              Code = 26
	RebalanceInProgress                Code = 27
	InvalidCommitOffsetSize            Code = 28
	InvalidTimestamp                   Code = 32
	UnsupportedVersion                 Code = 35
	TopicAlreadyExists                 Code = 36
	InvalidPartitions                  Code = 37
	InvalidReplicationFactor           Code = 38
	InvalidReplicaAssignment           Code = 39
	InvalidConfig                      Code = 40
	NotController                      Code = 41
	InvalidRequest                     Code = 42
	PolicyViolation                    Code = 44
	OutOfOrderSequenceNumber           Code = 45
	InvalidProducerEpoch               Code = 47
	TransactionalIDAuthorizationFailed Code = 53
	KafkaStorageError                  Code = 56
	ReassignmentInProgress             Code = 60
	NonEmptyGroup                      Code = 68
	GroupIDNotFound                    Code = 69
	FetchSessionIDNotFound             Code = 70
	InvalidFetchSessionEpoch           Code = 71
	ListenerNotFound                   Code = 72
	TopicDeletionDisabled              Code = 73
	FencedLeaderEpoch                  Code = 74
	UnknownLeaderEpoch                 Code = 75
	UnsupportedCompressionType         Code = 76
	StaleBrokerEpoch                   Code = 77
	OffsetNotAvailable                 Code = 78
	MemberIDRequired                   Code = 79
	PreferredLeaderNotAvailable        Code = 80
	GroupMaxSizeReached                Code = 81
	FencedInstanceID                   Code = 82
	EligibleLeadersNotAvailable        Code = 83
	ElectionNotNeeded                  Code = 84
	GroupSubscribedToTopic             Code = 86
	InvalidRecord                      Code = 87
	InvalidUpdateVersion               Code = 95
	UnknownTopicID                     Code = 100
	FetchSessionTopicIDError           Code = 106
	IneligibleReplica                  Code = 107
	MismatchedEndpointType             Code = 114
	UnsupportedEndpointType            Code = 115
)

var codeNames = map[Code]string{
	UnknownServerError: "UNKNOWN_SERVER_ERROR", None: "NONE", OffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
	CorruptMessage: "CORRUPT_MESSAGE", UnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
	LeaderNotAvailable: "LEADER_NOT_AVAILABLE", NotLeaderOrFollower: "NOT_LEADER_OR_FOLLOWER",
	RequestTimedOut: "REQUEST_TIMED_OUT",
	MessageTooLarge: "MESSAGE_TOO_LARGE", CoordinatorNotAvailable: "COORDINATOR_NOT_AVAILABLE",
	InvalidTopicException: "INVALID_TOPIC_EXCEPTION", RecordListTooLarge: "RECORD_LIST_TOO_LARGE",
	NotEnoughReplicas: "NOT_ENOUGH_REPLICAS", NotEnoughReplicasAfterAppend: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
	InvalidRequiredAcks: "INVALID_REQUIRED_ACKS", InvalidTimestamp: "INVALID_TIMESTAMP",
	PolicyViolation: "POLICY_VIOLATION", ReassignmentInProgress: "REASSIGNMENT_IN_PROGRESS",
	OffsetNotAvailable: "OFFSET_NOT_AVAILABLE", PreferredLeaderNotAvailable: "PREFERRED_LEADER_NOT_AVAILABLE", EligibleLeadersNotAvailable: "ELIGIBLE_LEADERS_NOT_AVAILABLE",
	ElectionNotNeeded:  "ELECTION_NOT_NEEDED",
	UnsupportedVersion: "UNSUPPORTED_VERSION", TopicAlreadyExists: "TOPIC_ALREADY_EXISTS",
	InvalidPartitions: "INVALID_PARTITIONS", InvalidReplicationFactor: "INVALID_REPLICATION_FACTOR",
	InvalidReplicaAssignment: "INVALID_REPLICA_ASSIGNMENT", InvalidConfig: "INVALID_CONFIG",
	NotController: "NOT_CONTROLLER", InvalidRequest: "INVALID_REQUEST",
	OutOfOrderSequenceNumber: "OUT_OF_ORDER_SEQUENCE_NUMBER",
	InvalidProducerEpoch:     "INVALID_PRODUCER_EPOCH", TransactionalIDAuthorizationFailed: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
	KafkaStorageError:      "KAFKA_STORAGE_ERROR",
	FetchSessionIDNotFound: "FETCH_SESSION_ID_NOT_FOUND", InvalidFetchSessionEpoch: "INVALID_FETCH_SESSION_EPOCH",
	FetchSessionTopicIDError: "FETCH_SESSION_TOPIC_ID_ERROR", ListenerNotFound: "LISTENER_NOT_FOUND",
	TopicDeletionDisabled: "TOPIC_DELETION_DISABLED", FencedLeaderEpoch: "FENCED_LEADER_EPOCH",
	UnknownLeaderEpoch: "UNKNOWN_LEADER_EPOCH", UnsupportedCompressionType: "UNSUPPORTED_COMPRESSION_TYPE",
	OffsetMetadataTooLarge: "OFFSET_METADATA_TOO_LARGE", CoordinatorLoadInProgress: "COORDINATOR_LOAD_IN_PROGRESS",
	NotCoordinator: "NOT_COORDINATOR", IllegalGeneration: "ILLEGAL_GENERATION",
	InconsistentGroupProtocol: "INCONSISTENT_GROUP_PROTOCOL", InvalidGroupID: "INVALID_GROUP_ID",
	UnknownMemberID: "UNKNOWN_MEMBER_ID", InvalidSessionTimeout: "INVALID_SESSION_TIMEOUT",
	RebalanceInProgress: "REBALANCE_IN_PROGRESS", InvalidCommitOffsetSize: "INVALID_COMMIT_OFFSET_SIZE",
	NonEmptyGroup: "NON_EMPTY_GROUP", GroupIDNotFound: "GROUP_ID_NOT_FOUND", MemberIDRequired: "MEMBER_ID_REQUIRED",
	GroupMaxSizeReached: "GROUP_MAX_SIZE_REACHED", FencedInstanceID: "FENCED_INSTANCE_ID",
	GroupSubscribedToTopic: "GROUP_SUBSCRIBED_TO_TOPIC", StaleControllerEpoch: "STALE_CONTROLLER_EPOCH",
	StaleBrokerEpoch: "STALE_BROKER_EPOCH", InvalidUpdateVersion: "INVALID_UPDATE_VERSION", IneligibleReplica: "INELIGIBLE_REPLICA",
	InvalidRecord: "INVALID_RECORD", UnknownTopicID: "UNKNOWN_TOPIC_ID",
	MismatchedEndpointType: "MISMATCHED_ENDPOINT_TYPE", UnsupportedEndpointType: "UNSUPPORTED_ENDPOINT_TYPE",
}

// String is the code's name in Kafka.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	return strconv.Itoa(int(c))
}
