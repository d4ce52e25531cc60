package ovs

import "strings"

// leaving are the flows that this process deletes: the monitor's word of their end is no news, and
// reading all flows back for it would delay the next change. A match that is added again is not
// among them any more, so the loss of a flow that is wanted is never taken for a deletion of ours.
// A match is without its priority here, which the monitor does not show. Guarded by Switch.mu.
type leaving map[string]map[match]int

// sends notes what a bundle deletes. What it adds too is looked at as before.
func (s *Switch) sends(bridge string, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.leaving[bridge]
	if there == nil {
		there = map[match]int{}
		s.leaving[bridge] = there
	}
	for _, line := range lines {
		if m, ok := matchOfLine(line, "delete_strict "); ok {
			there[m]++
		}
	}
	for _, line := range lines {
		if m, ok := matchOfLine(line, "add "); ok {
			delete(there, m)
		}
	}
}

// leaves takes the monitor's word that a flow of ours was deleted; false: it was not by this process.
func (s *Switch) leaves(bridge string, m match) bool {
	m.priority = 0
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.leaving[bridge][m]
	if n > 1 {
		s.leaving[bridge][m] = n - 1
	} else {
		delete(s.leaving[bridge], m)
	}
	return n > 0
}

// forgetLeaving follows what the monitor cannot tell: a bundle that failed, or a monitor that was
// not there.
func (s *Switch) forgetLeaving(bridge string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leaving, bridge)
}

// matchOfLine reads a line of a bundle that begins with a command.
func matchOfLine(line, command string) (match, bool) {
	text, ok := strings.CutPrefix(line, command)
	if !ok {
		return match{}, false
	}
	if before, _, found := cutActions(text); found {
		text = before
	}
	m, err := parseMatch(text)
	m.priority = 0
	return m, err == nil
}
