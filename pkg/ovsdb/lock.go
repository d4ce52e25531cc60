package ovsdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// lockName is an <id> of RFC 7047 section 3.1.
var lockName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// heldLocks are the locks that a connection holds.
type heldLocks map[string]struct{}

func (h heldLocks) list() []string { return slices.Sorted(maps.Keys(h)) }

func (h heldLocks) set(name string, held bool) {
	if held {
		h[name] = struct{}{}
	} else {
		delete(h, name)
	}
}

// askLocks asks for the locks. The server answers when it can give one or not, and tells later
// when another connection's end gives it to this one.
func (l *link) askLocks(names []string) error {
	for _, name := range names {
		if err := l.start(call{method: "lock", queued: true, lock: name}, name); err != nil {
			return err
		}
	}
	return nil
}

// Steal takes a lock of Config.Locks from whoever holds it, who is told, RFC 7047 section 4.1.8.
// A batch says when it is held.
func (s *Session) Steal(name string) error {
	if !slices.Contains(s.config.Locks, name) {
		return fmt.Errorf("steal the lock %q, which the session does not ask for", name)
	}
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil {
		return ErrNotConnected
	}
	// A connection that waits for a lock has to end that first.
	if err := c.start(call{method: "unlock", queued: true, lock: name}, name); err != nil {
		return err
	}
	return c.start(call{method: "steal", queued: true, lock: name}, name)
}

// lockAnswered takes the reply to a lock, unlock or steal.
func (l *link) lockAnswered(q queued) error {
	raw, err := q.result(q.call.method)
	if err != nil {
		return err
	}
	var result struct {
		Locked bool `json:"locked"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return protocolError("%s reply: %w", q.call.method, err)
	}
	l.held.set(q.call.lock, result.Locked)
	return nil
}

// lockChanged takes the notification that a lock was given to the connection, or taken from it.
func (l *link) lockChanged(q queued) error {
	var names []string
	if err := json.Unmarshal(q.Params, &names); err != nil || len(names) != 1 {
		return protocolError("%s with the parameters %.40q", q.Method, q.Params)
	}
	l.held.set(names[0], q.Method == "locked")
	return nil
}
