package ovsdb

import "strings"

// deliver hands the handler what is new to it: changes of rows, of the state, or
// the answer to a SetConditions.
func (s *Session) deliver(l *link, connected bool) {
	batch := Batch{Changes: s.content.flush(), Connected: connected}
	s.mu.Lock()
	batch.Generation = s.generation
	if connected {
		batch.Locks = l.held.list()
		batch.Endpoint = l.endpoint.text
		batch.InSync = l.asked == nil && s.ackedGeneration == s.generation
	}
	s.mu.Unlock()
	defer s.recordDelivery(batch.InSync)
	state := delivered{batch.Connected, batch.InSync, batch.Endpoint, strings.Join(batch.Locks, " "), s.ackedGeneration}
	if len(batch.Changes) == 0 && state == s.delivered {
		return
	}
	s.delivered = state
	s.config.Handler(batch)
}

// recordDelivery makes the status say what the handler has by now. The handler may
// have called SetConditions.
func (s *Session) recordDelivery(inSync bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.InSync = inSync && s.ackedGeneration == s.generation
	s.status.Rows = s.content.count()
}

// delivered is the state that the handler was told last.
type delivered struct {
	connected, inSync bool
	endpoint, locks   string
	generation        uint64
}
