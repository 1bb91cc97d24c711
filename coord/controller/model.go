package controller

import (
	"platter/coord/cluster"
	"platter/engine/store"
)

// Model is the controller's deciding part alone, without coordinator, brokers or clock: what simulations of a whole
// cluster drive. The round is: tell it news, take the changes it wants, write them, Commit those that were written,
// and take what the brokers have to hear. For one goroutine.
type Model struct{ core *core }

// NewModel knows of nothing yet.
func NewModel() *Model { return &Model{newCore()} }

// StateChange is a partition's state to be written.
type StateChange struct {
	TP    store.TP
	State cluster.State // ZkVersion is the one to write against
	New   bool
}

// Told is what one broker has to hear; headers are for the caller to fill in.
type Told struct {
	To   cluster.Broker
	Lead *LeaderAndISR // nil: nothing
}

// SetBrokers tells who is registered now.
func (m *Model) SetBrokers(live []cluster.Broker) { m.core.setBrokers(live) }

// SetTopic tells of a topic; a partition without a state (SetState) is new.
func (m *Model) SetTopic(name string, a cluster.Assignment, unclean bool) {
	m.core.setTopic(name, a, unclean)
}

// SetState tells what a state znode says.
func (m *Model) SetState(tp store.TP, s cluster.State) {
	m.core.setState(m.core.topics[tp.Topic], int(tp.Partition), s)
}

// Leave tells that a broker shuts down.
func (m *Model) Leave(broker int32) { m.core.leave(broker) }

// Elections are the changes that are due; they are due until they are committed.
func (m *Model) Elections() []StateChange {
	var out []StateChange
	for _, ch := range m.core.elections() {
		out = append(out, StateChange{ch.tp, ch.state, ch.isNew})
	}
	return out
}

// Commit takes over a change that was written; version is the znode's now.
func (m *Model) Commit(ch StateChange, controllerEpoch, version int32) {
	m.core.commit(change{ch.TP, ch.State, ch.New}, controllerEpoch, version)
}

// Judge makes the change of a leader's wish; errors as AlterPartition's.
func (m *Model) Judge(broker int32, w *ISRChange) (StateChange, error) {
	isr, err := m.core.judge(broker, w)
	if err != nil {
		return StateChange{}, err
	}
	s := m.core.partition(w.TP).state
	s.ISR = isr
	return StateChange{TP: w.TP, State: s}, nil
}

// State is a partition's, as far as it was committed.
func (m *Model) State(tp store.TP) cluster.State { return m.core.partition(tp).state }

// Pushes are what has to be told since the last call.
func (m *Model) Pushes() []Told {
	var out []Told
	for _, p := range m.core.pushes() {
		out = append(out, Told{p.to, p.lead})
	}
	return out
}
