package group

import (
	"context"

	"platter/coord/group/core"
)

// Join answers a JoinGroup; To and NewID of the request are set here. It waits until the rebalance is
// over, or ctx ends: then nobody waits for the answer, and the member must be heard of within its session.
func (c *Coordinator) Join(ctx context.Context, group string, r core.JoinRequest) core.JoinReply {
	refused := func(err error) core.JoinReply {
		return core.JoinReply{Err: err, MemberID: r.MemberID, Generation: -1}
	}
	if group == "" {
		return refused(ErrInvalidGroup)
	}
	s, err := c.find(group)
	if err != nil {
		return refused(err)
	}
	prefix := r.ClientID
	if r.InstanceID != nil {
		prefix = *r.InstanceID
	}
	wait := make(chan core.JoinReply, 1)
	r.To, r.NewID = wait, newMemberID(prefix)
	if c.cfg.DelayAlone || len(c.cfg.Image().Brokers) > 1 {
		r.InitialDelayMs = c.cfg.InitialDelayMs
	}
	err = s.do(func(now int64) {
		switch {
		case r.MemberID != "" && s.groups[group] == nil:
			wait <- refused(core.ErrUnknownMember)
		case c.full() && (r.MemberID == "" || s.groups[group].IsPending(r.MemberID)):
			c.warn("groups take all the memory that they may; a member is refused", "group", group, "bytes", c.bytes.Load())
			wait <- refused(core.ErrGroupFull)
		default:
			e := s.group(group, now)
			s.act(e, e.Join(now, &r))
		}
	})
	if err != nil {
		return refused(err)
	}
	select {
	case reply := <-wait:
		return reply
	case <-ctx.Done():
		s.abandon(group, wait)
		return refused(ErrNotAvailable)
	}
}

// abandon says that nobody waits for an answer any more.
func (s *shard) abandon(group string, to any) {
	_ = s.do(func(now int64) {
		if e := s.groups[group]; e != nil {
			s.act(e, e.Abandon(now, to))
		}
	})
}

// Sync answers a SyncGroup; To of the request is set here. It waits until the leader's assignment is
// stored, or ctx ends.
func (c *Coordinator) Sync(ctx context.Context, group string, r core.SyncRequest) core.SyncReply {
	if group == "" {
		return core.SyncReply{Err: ErrInvalidGroup}
	}
	s, err := c.find(group)
	if err != nil {
		return core.SyncReply{Err: err}
	}
	wait := make(chan core.SyncReply, 1)
	r.To = wait
	err = s.do(func(now int64) {
		e := s.groups[group]
		if e == nil {
			wait <- core.SyncReply{Err: core.ErrUnknownMember}
			return
		}
		s.act(e, e.Sync(now, &r))
	})
	switch err {
	case nil:
	case ErrLoading:
		// Joined with the coordinator before: as in Kafka the member joins anew.
		return core.SyncReply{Err: core.ErrRebalanceInProgress}
	default:
		return core.SyncReply{Err: err}
	}
	select {
	case reply := <-wait:
		return reply
	case <-ctx.Done():
		s.abandon(group, wait)
		return core.SyncReply{Err: ErrNotAvailable}
	}
}

// Heartbeat answers a Heartbeat. While the coordinator is loading, everybody is taken to be alive.
func (c *Coordinator) Heartbeat(group, member string, instance *string, generation int32) error {
	if group == "" {
		return ErrInvalidGroup
	}
	s, err := c.find(group)
	if err != nil {
		return err
	}
	doErr := s.do(func(now int64) {
		e := s.groups[group]
		if e == nil {
			err = core.ErrUnknownMember
			return
		}
		err = e.Heartbeat(now, member, instance, generation)
		s.settle(e)
	})
	switch doErr {
	case nil:
		return err
	case ErrLoading:
		return nil
	}
	return doErr
}

// Leave answers a LeaveGroup: an error for each member, in the order given, or one for all.
func (c *Coordinator) Leave(group string, leaving []core.Leaving) ([]error, error) {
	if group == "" {
		return nil, ErrInvalidGroup
	}
	s, err := c.find(group)
	if err != nil {
		return nil, err
	}
	var each []error
	err = s.do(func(now int64) {
		e := s.groups[group]
		if e == nil {
			for range leaving {
				each = append(each, core.ErrUnknownMember)
			}
			return
		}
		var w core.Work
		each, w = e.Leave(now, leaving)
		s.act(e, w)
	})
	return each, err
}
