package bfd

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// end is this end of the session with one neighbour: the Session, its clock and
// its sending socket.
type end struct {
	peer          Peer
	speaker       *Speaker
	receiver      *receiver
	discriminator uint32
	log           *slog.Logger
	wake          loop.Signal // Session.Next has come nearer

	mu      sync.Mutex // guards what follows
	session *Session   // nil before Run
	path    Path
	armed   time.Time // when run looks next
	out     sender
	since   time.Time
	flaps   uint32
	in      uint64
	// refused is why the neighbour's latest packet was not taken.
	refused string
}

// run drives the session until ctx ends.
func (e *end) run(ctx context.Context) error {
	defer e.out.close()
	e.mu.Lock()
	e.session = NewSession(e.peer.Settings, e.discriminator, rand.Float64, time.Now())
	e.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if e.speaker.tellEnd.Load() {
				e.shut()
			}
			return nil
		case <-e.wake:
		case <-timer.C:
		}
		// A process that was held up finds what has come meanwhile in the socket.
		if e.overdue() {
			e.receiver.drain()
		}
		if next := e.expire(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

func (e *end) overdue() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session.Overdue(time.Now())
}

func (e *end) expire() (next time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, was := time.Now(), e.session.State()
	p, send := e.session.Expire(now)
	if send {
		e.send(p)
	}
	e.follow(was, now)
	e.armed = e.session.Next()
	return e.armed
}

func (e *end) receive(now time.Time, p Packet) Drop {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.State() == AdminDown {
		return DropAdminDown
	}
	was := e.session.State()
	reply, send := e.session.Receive(now, p)
	if send {
		e.send(reply)
	}
	e.in++
	e.refused = ""
	e.follow(was, now)
	if next := e.session.Next(); !next.IsZero() && (e.armed.IsZero() || next.Before(e.armed)) {
		e.wake.Send()
	}
	return dropNone
}

// follow tells what has become of the session. The caller holds mu.
func (e *end) follow(was State, now time.Time) {
	s := e.session
	if s.state != was {
		e.since = now
		if was == Up {
			e.flaps++
		}
	}
	path := nextPath(e.path, was, s.state, s.remoteState)
	if path == e.path {
		return
	}
	e.path = path
	switch path {
	case PathUp:
		e.write(slog.LevelInfo, now, "BFD session up")
	case PathLost:
		e.write(slog.LevelWarn, now, "BFD session lost", slog.String("reason", s.diagnostic.String()), slog.String("neighbor_reason", s.last.Diagnostic.String()))
	case PathOff:
		e.write(slog.LevelInfo, now, "BFD is switched off at the neighbour")
	}
	if e.speaker.changed != nil {
		e.speaker.changed(e.peer.Neighbor, path)
	}
}

// write logs what the neighbour may cause as often as it likes.
func (e *end) write(level slog.Level, now time.Time, event string, attrs ...slog.Attr) {
	ok, skipped := e.speaker.limit.Allow(event, e.peer.Neighbor.String(), now)
	if !ok {
		return
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", skipped))
	}
	e.log.LogAttrs(context.Background(), level, event, attrs...)
}

// nextPath is what a change of state makes of a path. A neighbour that has switched
// BFD off has done so until the session is up again.
func nextPath(path Path, was, state, remote State) Path {
	switch {
	case state == Up:
		return PathUp
	case remote == AdminDown:
		return PathOff
	case was == Up:
		return PathLost
	}
	return path
}

// shut tells the neighbour that the session ends on purpose, a few times since a
// packet may be lost.
func (e *end) shut() {
	const times, pause = 3, 10 * time.Millisecond
	for range times {
		e.mu.Lock()
		if !e.peer.Passive || e.session.remote != 0 {
			e.send(e.session.Shut())
		}
		e.mu.Unlock()
		time.Sleep(pause)
	}
}

// send is called with mu held. What cannot be sent now is in Status, and is tried
// again with the next packet.
func (e *end) send(p Packet) {
	problem := e.out.problem
	e.out.send(e.peer, p)
	if e.out.problem != problem && e.out.problem != "" {
		e.write(slog.LevelWarn, time.Now(), "BFD packets cannot be sent", slog.String("error", e.out.problem))
	}
}

// minTTL is the lowest that the session takes (RFC 5881 section 5).
func (e *end) minTTL() uint8 {
	if !e.peer.Multihop {
		return maxTTL
	}
	return e.peer.MinTTL
}

// meant tells whether a packet from there can be this session's.
func (e *end) meant(from origin) bool {
	return from.multihop == e.peer.Multihop && from.neighbor == e.peer.Neighbor.WithZone("") &&
		(!e.peer.Local.IsValid() || from.local == e.peer.Local.WithZone("")) &&
		(e.peer.Neighbor.Zone() == "" || e.receiver.index(e.peer.Neighbor.Zone()) == from.ifindex)
}

func (e *end) refuse(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = why
}

func (e *end) status() SessionStatus {
	problem := e.receiver.trouble()
	e.mu.Lock()
	defer e.mu.Unlock()
	st := SessionStatus{
		Neighbor: e.peer.Neighbor, Multihop: e.peer.Multihop, Path: e.path, State: Down, RemoteState: Down, Local: e.discriminator,
		Since: e.since, Flaps: e.flaps, In: e.in, Out: e.out.count, Problem: cmp.Or(problem, e.out.problem, e.refused),
	}
	if s := e.session; s != nil {
		st.State, st.RemoteState, st.Diagnostic, st.RemoteDiagnostic = s.state, s.remoteState, s.diagnostic, s.last.Diagnostic
		st.TxInterval, st.Remote = s.TxInterval(), s.remote
		if !s.heard.IsZero() {
			st.Detection = s.Detection()
		}
	}
	return st
}
