package group

import (
	"errors"

	"platter/coord/group/core"
)

// Listed is one group in a list.
type Listed struct {
	Group        string
	ProtocolType string
	State        core.State
}

// List is all groups of this broker, in no order. ErrLoading: more may come.
func (c *Coordinator) List() ([]Listed, error) {
	var out []Listed
	var loading error
	for _, s := range c.all() {
		err := s.do(func(int64) {
			for _, e := range s.groups {
				out = append(out, Listed{e.ID(), e.ProtocolType(), e.State()})
			}
		})
		if errors.Is(err, ErrLoading) {
			loading = err
		}
	}
	return out, loading
}

// Describe shows a group; core.ErrNoGroup.
func (c *Coordinator) Describe(group string) (core.Description, error) {
	s, err := c.find(group)
	if err != nil {
		return core.Description{}, err
	}
	var d core.Description
	doErr := s.do(func(int64) {
		e := s.groups[group]
		if e == nil {
			err = core.ErrNoGroup
			return
		}
		d = e.Describe()
	})
	return d, errors.Join(doErr, err)
}

// DeleteGroups deletes groups without members, with their offsets, and returns when that is committed.
// The errors are in the order given: core.ErrNoGroup, core.ErrNonEmpty and so on.
func (c *Coordinator) DeleteGroups(groups []string) []error {
	out := make([]error, len(groups))
	done := make([]chan error, len(groups))
	for i, id := range groups {
		s, err := c.find(id)
		if err != nil {
			out[i] = err
			continue
		}
		done[i] = make(chan error, 1)
		out[i] = s.do(func(int64) {
			e := s.groups[id]
			switch {
			case e == nil:
				done[i] <- core.ErrNoGroup
			case e.State() != core.Empty:
				done[i] <- core.ErrNonEmpty
			default:
				e.Disinvite()
				s.bury(e, func(err error) { done[i] <- err })
			}
		})
	}
	for i := range groups {
		if out[i] == nil {
			out[i] = storageError(<-done[i])
		}
	}
	return out
}
