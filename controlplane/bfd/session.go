package bfd

import "time"

// Settings are what one end of a session wants.
type Settings struct {
	// MinTx is the interval to send with while the session is up, MinRx the shortest
	// to receive. The slower of MinTx and the neighbour's MinRx is used.
	MinTx, MinRx time.Duration
	// Multiplier is after how many of our intervals the neighbour counts us as lost.
	Multiplier uint8
	// Passive sends nothing before the neighbour does.
	Passive bool
}

// slowInterval is the least interval of a session that is not up (RFC 5880 section
// 6.8.3).
const slowInterval = time.Second

// Session is one end of a BFD session. Its methods are given the time, and tell
// what to send; at Next they want to hear of the time again. The names in brackets
// are the state variables of RFC 5880 section 6.8.1.
type Session struct {
	cfg   Settings
	local uint32 // bfd.LocalDiscr

	state       State      // bfd.SessionState
	diagnostic  Diagnostic // bfd.LocalDiag
	remote      uint32     // bfd.RemoteDiscr
	remoteState State      // bfd.RemoteSessionState
	remoteMinRx time.Duration
	// last is what the neighbour last sent.
	last Packet
	// polling: a Poll Sequence is under way (section 6.5).
	polling bool
	// jitter gives a number in [0,1) for each interval.
	jitter func() float64

	heard  time.Time // when the last packet came; zero: never, or too long ago
	nextTx time.Time // zero: nothing is sent periodically
}

// NewSession makes an end that is down and sends from now on, unless it is passive.
// local is its discriminator: not 0, and no other session's on this system.
func NewSession(cfg Settings, local uint32, jitter func() float64, now time.Time) *Session {
	s := &Session{cfg: cfg, local: local, jitter: jitter, state: Down, remoteState: Down, remoteMinRx: time.Microsecond}
	if !cfg.Passive {
		s.nextTx = now
	}
	return s
}

// State is the session's.
func (s *Session) State() State { return s.state }

// desiredTx is bfd.DesiredMinTxInterval.
func (s *Session) desiredTx() time.Duration {
	if s.state == Up {
		return s.cfg.MinTx
	}
	return max(s.cfg.MinTx, slowInterval)
}

// TxInterval is the agreed interval of our packets, before jitter; 0: none are sent.
func (s *Session) TxInterval() time.Duration {
	if s.silent() {
		return 0
	}
	return max(s.desiredTx(), s.remoteMinRx)
}

// silent tells whether periodic packets are not to be sent (section 6.8.7).
func (s *Session) silent() bool {
	// Demand mode is active at the neighbour when it asks for it and both ends are up.
	demanded := s.last.Demand && s.state == Up && s.remoteState == Up
	return s.cfg.Passive && s.remote == 0 || s.remoteMinRx == 0 || demanded && !s.polling
}

// Detection is the detection time (section 6.8.4); 0 before the neighbour was heard.
func (s *Session) Detection() time.Duration {
	return time.Duration(s.last.Multiplier) * max(s.cfg.MinRx, s.last.MinTx)
}

// Next is when Expire is to be called; zero: nothing is waited for.
func (s *Session) Next() time.Time {
	if s.heard.IsZero() {
		return s.nextTx
	}
	silence := s.heard.Add(s.Detection())
	if s.nextTx.IsZero() || silence.Before(s.nextTx) {
		return silence
	}
	return s.nextTx
}

// Overdue tells whether Expire would find the neighbour silent for too long.
func (s *Session) Overdue(now time.Time) bool {
	return !s.heard.IsZero() && !now.Before(s.heard.Add(s.Detection()))
}

// Receive takes a packet that Parse took and that is for this session. It tells
// what to send at once, if anything.
func (s *Session) Receive(now time.Time, p Packet) (reply Packet, send bool) {
	if s.state == AdminDown {
		return Packet{}, false
	}
	was := s.state
	s.last, s.remote, s.remoteState, s.remoteMinRx, s.heard = p, p.Mine, p.State, p.MinRx, now
	if p.Final {
		s.polling = false
	}
	s.advance(p.State)
	if s.state == Up && was != Up {
		// The interval falls from a second to what is wanted, which is told by a Poll
		// Sequence (section 6.8.3).
		s.polling = true
	}
	s.retime(now)
	if p.Poll {
		return s.packet(false, true), true
	}
	// What the neighbour does not know yet is told at once (section 6.8.7).
	if s.state != was && !s.silent() {
		return s.packet(s.polling, false), true
	}
	return Packet{}, false
}

// advance is the state machine of section 6.8.6.
func (s *Session) advance(remote State) {
	switch {
	case remote == AdminDown:
		if s.state != Down {
			s.down(NeighborDown)
		}
	case s.state == Down && remote == Down:
		s.state = Init
	case s.state == Down && remote == Init, s.state == Init && remote >= Init:
		s.state, s.diagnostic = Up, NoDiagnostic
	case s.state == Up && remote == Down:
		s.down(NeighborDown)
	}
}

func (s *Session) down(why Diagnostic) { s.state, s.diagnostic, s.polling = Down, why, false }

// retime follows a change of the interval: a shorter one holds at once, a longer
// one from the next packet on.
func (s *Session) retime(now time.Time) {
	if s.silent() {
		s.nextTx = time.Time{}
		return
	}
	if next := now.Add(s.jittered()); s.nextTx.IsZero() || next.Before(s.nextTx) {
		s.nextTx = next
	}
}

// jittered is the next interval: 75 to 100 percent of the agreed one, and at most
// 90 where one packet lost is the session lost (section 6.8.7).
func (s *Session) jittered() time.Duration {
	part := 0.25
	if s.cfg.Multiplier == 1 {
		part = 0.15
	}
	interval := float64(s.TxInterval())
	return time.Duration(interval * (0.75 + part*s.jitter()))
}

// Expire does what is due: it notes silence and tells what to send.
func (s *Session) Expire(now time.Time) (p Packet, send bool) {
	was := s.state
	if s.Overdue(now) {
		if s.state == Init || s.state == Up {
			s.down(TimeExpired)
		}
		// Whoever comes next is another one (bfd.RemoteDiscr, section 6.8.1).
		s.heard, s.remote, s.remoteState, s.remoteMinRx, s.last.Demand = time.Time{}, 0, Down, time.Microsecond, false
		s.retime(now)
	}
	if s.silent() {
		return Packet{}, false
	}
	if due := !s.nextTx.IsZero() && !now.Before(s.nextTx); !due {
		return s.packet(false, false), s.state != was
	}
	s.nextTx = now.Add(s.jittered())
	return s.packet(s.polling, false), true
}

// Shut ends the session for good; the packet tells the neighbour.
func (s *Session) Shut() Packet {
	s.state, s.diagnostic, s.polling = AdminDown, AdministDown, false
	s.nextTx, s.heard = time.Time{}, time.Time{}
	return s.packet(false, false)
}

func (s *Session) packet(poll, final bool) Packet {
	return Packet{
		Diagnostic: s.diagnostic, State: s.state, Poll: poll, Final: final, Multiplier: s.cfg.Multiplier,
		Mine: s.local, Yours: s.remote, MinTx: s.desiredTx(), MinRx: s.cfg.MinRx,
	}
}
