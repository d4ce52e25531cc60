package service

import (
	"cmp"
	"slices"
	"time"
)

// FileStatus is what is known of the file of identities.
type FileStatus struct {
	// Read is when its present content was read; zero: never.
	Read time.Time
	// Ports and Networks are those in it.
	Ports, Networks int
	// Error is why it cannot be read now.
	Error string
	// Errors counts those that appeared.
	Errors uint64
}

// HeartStatus is what is known of the heartbeat.
type HeartStatus struct {
	// Last is the last beat; zero: none.
	Last time.Time
	// Error is why it does not beat.
	Error string
}

// ListenerStatus is one place in which it listens, or is to.
type ListenerStatus struct {
	// Network is empty for steered requests.
	Network   string
	Namespace string
	Address   string
	// Serving: connections are taken. Error is why it is not open.
	Serving bool
	Error   string
	// Since is when it was opened, or was first to be.
	Since time.Time
}

// Status is a moment of the service.
type Status struct {
	File        FileStatus
	Heart       HeartStatus
	Listeners   []ListenerStatus
	Connections int
}

// Status tells how it is.
func (s *Service) Status() Status {
	out := Status{Connections: s.server.Connections()}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.File, out.Heart = s.file, s.heart
	for _, p := range s.places {
		l := ListenerStatus{Network: p.network, Namespace: p.path, Address: p.at().String()}
		if o := s.open[p.socket]; o != nil {
			l.Since, l.Serving = o.since, o.served != nil
		} else if w := s.wait[p.socket]; w != nil {
			l.Since, l.Error = w.since, w.err.Error()
		}
		out.Listeners = append(out.Listeners, l)
	}
	slices.SortStableFunc(out.Listeners, func(a, b ListenerStatus) int { return cmp.Compare(a.Network, b.Network) })
	return out
}
