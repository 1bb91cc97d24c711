// Package controller chooses leaders and places replicas: a pure core with a driver.
package controller

import (
	"context"
	"errors"

	"platter/engine/store"
)

// Errors, mapped to Kafka's codes in net/api.
var (
	ErrNotController      = errors.New("not the controller")
	ErrTopicExists        = errors.New("topic exists")
	ErrUnknownTopic       = errors.New("unknown topic")
	ErrUnknownTopicID     = errors.New("unknown topic id")
	ErrInvalidTopic       = errors.New("invalid topic name")
	ErrInvalidPartitions  = errors.New("invalid partition count")
	ErrInvalidReplication = errors.New("invalid replication factor")
	ErrInvalidAssignment  = errors.New("invalid replica assignment")
	ErrInvalidConfig      = errors.New("invalid configuration")
	ErrTimeout            = errors.New("not done in time")
)

// NewTopic is one topic to create. PartitionCount and ReplicationFactor -1: the broker's default.
type NewTopic struct {
	Name              string
	PartitionCount    int32
	ReplicationFactor int16
	Assignment        [][]int32 // replicas by partition; nil: placed by the controller
	Configs           map[string]*string
	ValidateOnly      bool
}

// Created is the outcome of one NewTopic. Err wraps one of the errors above with a message for the client.
type Created struct {
	Name              string
	ID                store.UUID
	PartitionCount    int32
	ReplicationFactor int16
	Err               error
}

// Controller is this broker's part in it; a broker that is not the controller answers ErrNotController.
type Controller struct{}

// CreateTopics creates and waits until the leaders serve, or ctx ends.
func (c *Controller) CreateTopics(ctx context.Context, ts []NewTopic) []Created { panic("stub") }

// DeleteTopics deletes by name and waits until the replicas are stopped, or ctx ends.
func (c *Controller) DeleteTopics(ctx context.Context, names []string) []error { panic("stub") }

// ProducerIDBlock reserves a block of producer ids: [first, first+count).
func (c *Controller) ProducerIDBlock(ctx context.Context) (first int64, count int32, err error) {
	panic("stub")
}
