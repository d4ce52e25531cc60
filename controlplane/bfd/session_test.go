package bfd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// wireUp is two sessions and the link between them, in a time of its own. What is
// sent arrives after the delay, if the link takes it.
type wireUp struct {
	t     *testing.T
	now   time.Time
	ends  [2]*Session
	cut   [2]bool // what the end sends is lost
	delay time.Duration
	fly   []flight
	// sent counts packets by end, and log is each change of state.
	sent [2]int
	last [2]Packet
	log  []string
}

type flight struct {
	to int
	at time.Time
	p  Packet
}

func fast(change ...func(*Settings)) Settings {
	s := Settings{MinTx: 300 * ms, MinRx: 300 * ms, Multiplier: 3}
	for _, c := range change {
		c(&s)
	}
	return s
}

func newWire(t *testing.T, a, b Settings) *wireUp {
	random := rand.New(rand.NewPCG(1, 2))
	return &wireUp{t: t, now: epoch, delay: ms, ends: [2]*Session{
		NewSession(a, 1, random.Float64, epoch), NewSession(b, 2, random.Float64, epoch),
	}}
}

func (w *wireUp) send(from int, p Packet) {
	w.sent[from]++
	w.last[from] = p
	if !w.cut[from] {
		w.fly = append(w.fly, flight{1 - from, w.now.Add(w.delay), p})
	}
}

func (w *wireUp) do(end int, f func(s *Session) (Packet, bool)) {
	s := w.ends[end]
	was := s.State()
	if p, ok := f(s); ok {
		w.send(end, p)
	}
	if s.State() != was {
		w.log = append(w.log, fmt.Sprintf("%c %s", 'A'+end, s.State()))
	}
}

// run lets time pass, event by event.
func (w *wireUp) run(d time.Duration) {
	w.t.Helper()
	until := w.now.Add(d)
	for range 100000 {
		at, who := until, -1
		for i, s := range w.ends {
			if next := s.Next(); !next.IsZero() && next.Before(at) {
				at, who = next, i
			}
		}
		if len(w.fly) > 0 && !w.fly[0].at.After(at) {
			f := w.fly[0]
			w.fly, w.now = w.fly[1:], f.at
			wire, drop := Parse(f.p.Append(nil))
			if drop != dropNone {
				w.t.Fatalf("%+v is dropped: %s", f.p, drop)
			}
			w.do(f.to, func(s *Session) (Packet, bool) { return s.Receive(w.now, wire) })
			continue
		}
		if w.now = at; who < 0 {
			return
		}
		w.do(who, func(s *Session) (Packet, bool) { return s.Expire(w.now) })
	}
	w.t.Fatal("time stands still")
}

func (w *wireUp) states(want string) {
	w.t.Helper()
	if got := fmt.Sprint(w.ends[0].State(), " ", w.ends[1].State()); got != want {
		w.t.Errorf("states %q, want %q; %s", got, want, strings.Join(w.log, ", "))
	}
}

func TestThreeWayHandshake(t *testing.T) {
	w := newWire(t, fast(), fast())
	w.run(20 * ms)
	w.states("up up")
	for i, s := range w.ends {
		if s.remote != uint32(2-i) || s.TxInterval() != 300*ms || s.Detection() != 900*ms && s.Detection() != 3*time.Second {
			t.Errorf("end %d: %+v", i, s)
		}
	}
	w.run(time.Second)
	for i, s := range w.ends {
		if s.polling || s.Detection() != 900*ms {
			t.Errorf("end %d still polls, or its detection time is %s", i, s.Detection())
		}
	}
	before := w.sent
	w.run(30 * time.Second) // 100 intervals at 75 to 100 percent
	for i, n := range w.sent {
		if n -= before[i]; n < 100 || n > 134 {
			t.Errorf("end %d sent %d packets in 30 s", i, n)
		}
	}
}

// The slower wish of the two is the interval; the detection time is each end's own.
func TestIntervals(t *testing.T) {
	w := newWire(t, Settings{MinTx: 100 * ms, MinRx: 50 * ms, Multiplier: 5}, Settings{MinTx: 20 * ms, MinRx: 400 * ms, Multiplier: 2})
	w.run(5 * time.Second)
	w.states("up up")
	for i, want := range []struct{ tx, detection time.Duration }{{400 * ms, 100 * ms}, {50 * ms, 2 * time.Second}} {
		if s := w.ends[i]; s.TxInterval() != want.tx || s.Detection() != want.detection {
			t.Errorf("end %d: interval %s, detection %s, want %+v", i, s.TxInterval(), s.Detection(), want)
		}
	}
}

func TestSilence(t *testing.T) {
	w := newWire(t, fast(), fast())
	w.run(5 * time.Second)
	w.cut = [2]bool{true, true}
	w.fly = nil
	heard := w.ends[0].heard
	if next := heard.Add(900*ms - 1); w.now.Before(next) {
		w.run(next.Sub(w.now))
	}
	if w.ends[0].State() != Up {
		t.Fatal("lost before the detection time")
	}
	w.run(heard.Add(900 * ms).Sub(w.now))
	w.run(1) // what is due now
	if s := w.ends[0]; s.State() != Down || s.diagnostic != TimeExpired || s.remote != 0 || s.desiredTx() != time.Second {
		t.Fatalf("after the detection time: %+v", s)
	}
	if p := w.last[0]; p.State != Down || p.Yours != 0 || p.Diagnostic != TimeExpired {
		t.Errorf("told %+v", p)
	}
	w.run(5 * time.Second)
	w.states("down down")
	before := w.sent[0]
	w.run(20 * time.Second)
	if n := w.sent[0] - before; n < 20 || n > 27 {
		t.Errorf("%d packets in 20 s while down, want one a second", n)
	}
	w.cut = [2]bool{}
	w.run(2 * time.Second)
	w.states("up up")
}

// A path that is lost one way only is lost at both ends, and no end comes up
// while it is so.
func TestOneWay(t *testing.T) {
	w := newWire(t, fast(), fast())
	w.run(5 * time.Second)
	w.cut[0] = true
	w.run(1200 * ms)
	if s := w.ends[0]; s.State() == Up || s.diagnostic != NeighborDown || s.last.Diagnostic != TimeExpired {
		t.Errorf("the end that hears: %+v", s)
	}
	w.log = nil
	w.run(time.Minute)
	if strings.Contains(strings.Join(w.log, ","), "up") {
		t.Errorf("came up: %v", w.log)
	}
	w.cut[0] = false
	w.run(2 * time.Second)
	w.states("up up")
}

// A lost packet or two in a row are no lost path.
func TestLoss(t *testing.T) {
	w := newWire(t, fast(), fast())
	w.run(5 * time.Second)
	w.log = nil
	for range 50 {
		w.cut = [2]bool{true, true}
		w.run(440 * ms)
		w.cut = [2]bool{}
		w.run(460 * ms)
	}
	w.states("up up")
	if w.log != nil {
		t.Errorf("changes: %v", w.log)
	}
}

func TestAdminDown(t *testing.T) {
	w := newWire(t, fast(), fast())
	w.run(5 * time.Second)
	w.send(0, w.ends[0].Shut())
	w.run(10 * time.Second)
	w.states("admin-down down")
	if s := w.ends[1]; s.diagnostic != NeighborDown || s.last.Diagnostic != AdministDown {
		t.Errorf("the other end %+v", s)
	}
	if _, send := w.ends[0].Receive(w.now, w.last[1]); send || w.ends[0].State() != AdminDown {
		t.Error("an end that is switched off answers")
	}
	w.ends[0] = NewSession(fast(), 9, rand.Float64, w.now)
	w.run(2 * time.Second)
	w.states("up up")
	if w.ends[1].remote != 9 {
		t.Errorf("the new discriminator is %d", w.ends[1].remote)
	}
}

// Two passive ends stay silent; one of them answers an active one.
func TestPassive(t *testing.T) {
	passive := func(s *Settings) { s.Passive = true }
	w := newWire(t, fast(passive), fast(passive))
	w.run(time.Minute)
	if w.sent != [2]int{} {
		t.Errorf("sent %v", w.sent)
	}
	w = newWire(t, fast(passive), fast())
	w.run(2 * time.Second)
	w.states("up up")
	w.cut[1] = true
	w.run(time.Minute)
	before := w.sent[0]
	w.run(time.Minute)
	if w.sent[0] != before {
		t.Error("a passive end sends to one that is gone")
	}
}

// A neighbour in demand mode hears no periodic packets, but the answers to its
// polls; when it leaves the mode they come again (RFC 5880 section 6.6).
func TestDemand(t *testing.T) {
	s := NewSession(fast(), 1, rand.Float64, epoch)
	now := epoch
	from := func(change func(*Packet)) (Packet, bool) {
		p := Packet{State: Up, Multiplier: 3, Mine: 2, Yours: 1, MinTx: 300 * ms, MinRx: 300 * ms}
		change(&p)
		return s.Receive(now, p)
	}
	from(func(p *Packet) { p.State = Down })
	from(func(p *Packet) { p.State = Init })
	from(func(p *Packet) { p.Final = true })
	if _, send := from(func(p *Packet) { p.Demand = true }); send || s.TxInterval() != 0 {
		t.Error("sends in demand mode")
	}
	now = now.Add(800 * ms)
	if _, send := s.Expire(now); send || s.State() != Up {
		t.Errorf("sent, or is %s", s.State())
	}
	if p, send := from(func(p *Packet) { p.Demand, p.Poll = true, true }); !send || !p.Final || p.Poll || p.State != Up {
		t.Errorf("the answer to a poll: %v %+v", send, p)
	}
	from(func(*Packet) {})
	if s.TxInterval() != 300*ms || s.Next().After(now.Add(300*ms)) {
		t.Error("does not send again")
	}
	from(func(p *Packet) { p.MinRx = 0 })
	if s.TxInterval() != 0 {
		t.Error("sends to one that wants no packets")
	}
	now = now.Add(900 * ms)
	if p, send := s.Expire(now); !send || p.State != Down {
		t.Errorf("silence is not noticed: %v %+v", send, p)
	}
}

// With a multiplier of 1 the jitter leaves room: at most 90 percent.
func TestJitter(t *testing.T) {
	for _, tt := range []struct {
		multiplier uint8
		random     float64
		want       time.Duration
	}{{3, 0, 750 * ms}, {3, 0.999999, time.Second}, {1, 0, 750 * ms}, {1, 0.999999, 900 * ms}} {
		s := NewSession(Settings{MinTx: time.Second, MinRx: time.Second, Multiplier: tt.multiplier}, 1, func() float64 { return tt.random }, epoch)
		if got := s.jittered().Round(ms); got != tt.want {
			t.Errorf("multiplier %d, random %v: %s, want %s", tt.multiplier, tt.random, got, tt.want)
		}
	}
}

// Each step of the table in RFC 5880 section 6.8.6.
func TestStateTable(t *testing.T) {
	for _, tt := range []struct{ state, remote, want State }{
		{Down, AdminDown, Down}, {Down, Down, Init}, {Down, Init, Up}, {Down, Up, Down},
		{Init, AdminDown, Down}, {Init, Down, Init}, {Init, Init, Up}, {Init, Up, Up},
		{Up, AdminDown, Down}, {Up, Down, Down}, {Up, Init, Up}, {Up, Up, Up},
		{AdminDown, Down, AdminDown}, {AdminDown, Up, AdminDown},
	} {
		s := NewSession(fast(), 1, rand.Float64, epoch)
		s.state = tt.state
		s.Receive(epoch, Packet{State: tt.remote, Multiplier: 3, Mine: 2, Yours: 1, MinTx: ms, MinRx: ms})
		if s.State() != tt.want {
			t.Errorf("%s and %s received: %s, want %s", tt.state, tt.remote, s.State(), tt.want)
		}
	}
}

func TestNextPath(t *testing.T) {
	for _, tt := range []struct {
		path               Path
		was, state, remote State
		want               Path
	}{
		{PathUnknown, Down, Init, Down, PathUnknown},
		{PathUnknown, Init, Up, Up, PathUp},
		{PathUnknown, Down, Down, AdminDown, PathOff},
		{PathUp, Up, Down, Down, PathLost},
		{PathUp, Up, Down, AdminDown, PathOff},
		{PathOff, Down, Init, Down, PathOff},
		{PathOff, Init, Down, Down, PathOff},
		{PathOff, Init, Up, Up, PathUp},
		{PathLost, Down, Init, Down, PathLost},
		{PathLost, Down, Down, AdminDown, PathOff},
	} {
		if got := nextPath(tt.path, tt.was, tt.state, tt.remote); got != tt.want {
			t.Errorf("%s, %s to %s, neighbour %s: %s, want %s", tt.path, tt.was, tt.state, tt.remote, got, tt.want)
		}
	}
}
