// Package txn is the transaction coordinator. For now it hands out producer ids (idempotence, KIP-98);
// transactions come later, and until then a transactional id is refused for good.
package txn

import (
	"context"
	"errors"
)

var (
	// ErrTransactionalID: transactions are not served yet. Fatal to the client, never retriable.
	ErrTransactionalID = errors.New("transactional ids are not supported")
	// ErrInvalidRequest: an empty transactional id, or only one of producer id and epoch was given.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrNotReady: no block of ids could be reserved; the client may retry.
	ErrNotReady = errors.New("producer ids are not available now")
)

// Blocks reserves producer ids: [first, first+count).
type Blocks interface {
	ProducerIDBlock(ctx context.Context) (first int64, count int32, err error)
}

// InitRequest is one InitProducerId. TransactionalID nil: none. ProducerID and ProducerEpoch -1: none.
type InitRequest struct {
	TransactionalID *string
	ProducerID      int64
	ProducerEpoch   int16
}

// ProducerIDs hands out producer ids. Safe for concurrent use.
type ProducerIDs struct{}

// Init answers InitProducerId: a new producer id, epoch 0.
func (p *ProducerIDs) Init(ctx context.Context, r InitRequest) (id int64, epoch int16, err error) {
	panic("stub")
}
