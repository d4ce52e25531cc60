package bgp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"unicode"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
)

// sessionEnds keeps why each neighbour's session last ended, and why it has not come up
// since, as package wire tells.
type sessionEnds struct {
	mu   sync.Mutex
	last map[netip.Addr]*sessionEnd
	// doubles are what wire.Doubled told last of each neighbour.
	doubles map[netip.Addr][]wire.Double
}

type sessionEnd struct {
	silent   []string // what leaves a connection of this neighbour without an answer
	limit    uint32   // Neighbor.MaxPrefixes
	asn      uint32   // Neighbor.ASN
	byUs     bool     // the session was ended here, for a reason that is known, such as BFD's
	ignored  int      // UPDATEs of this session of which the routes could not be read
	ended    string   // why the last session ended
	graceful bool     // and the neighbour's routes are kept for its restart
	connect  string   // why the latest connection was not made; "" since there was one
}

func newSessionEnds(c Config) *sessionEnds {
	e := &sessionEnds{last: map[netip.Addr]*sessionEnd{}, doubles: map[netip.Addr][]wire.Double{}}
	for _, n := range c.Neighbors {
		if n.Address.IsValid() {
			e.last[n.Address] = newSessionEnd(n, c.ASN)
		}
	}
	return e
}

func newSessionEnd(n Neighbor, asn uint32) *sessionEnd {
	return &sessionEnd{silent: n.silent(asn), limit: n.MaxPrefixes, asn: n.ASN}
}

// replace takes in a neighbour that was found on a link, in the place of another
// one; old is invalid if there was none.
func (e *sessionEnds) replace(old netip.Addr, n Neighbor, asn uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := newSessionEnd(n, asn)
	if was := e.last[old]; was != nil {
		end.ended = was.ended
		delete(e.last, old)
	}
	e.last[n.Address] = end
}

// silent words what of the configuration may not be as the neighbour has it.
func (n Neighbor) silent(asn uint32) []string {
	out := []string{"the neighbour is down"}
	if n.Password != "" {
		out = append(out, "it has another password")
	} else {
		out = append(out, "it wants a password")
	}
	switch {
	case n.TTLSecurity > 0:
		out = append(out, "it is further away than TTL security allows")
	case n.ASN != asn && n.MultihopTTL <= 1:
		out = append(out, "it is more than one hop away and multihop is off")
	case n.ASN != asn:
		out = append(out, "it is further away than multihop allows")
	}
	return out
}

// connection takes news of package wire, which alone knows why a session ends.
func (s *GoBGP) connection(e wire.Event) {
	if e.Kind == wire.Withheld {
		s.endWithheld(e.Neighbor)
		return
	}
	s.ends.take(e)
	if e.Kind == wire.Established {
		s.sessionFrom(e.Neighbor, e.Local)
	}
	switch {
	case e.Kind != wire.Ended || !e.End.Established:
	case s.leaving.Load():
		s.log.Info("BGP session closed by this node's stop", slog.String("neighbor", e.Neighbor.String()))
	default:
		s.log.Warn("BGP session lost", slog.String("neighbor", e.Neighbor.String()),
			slog.String("reason", s.ends.lastEnd(e.Neighbor)), slog.Bool("graceful", s.ends.lingers(e.Neighbor)))
	}
}

// lastEnd is why a neighbour's last session ended.
func (e *sessionEnds) lastEnd(a netip.Addr) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a]; end != nil {
		return end.ended
	}
	return ""
}

func (e *sessionEnds) take(news wire.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if news.Kind == wire.Doubled {
		e.doubles[news.Neighbor] = news.Doubles
		return
	}
	end := e.last[news.Neighbor]
	if end == nil {
		return
	}
	switch news.Kind {
	case wire.ConnectFailed:
		end.connect = connectError(news.Err, end.silent)
	case wire.Connected:
		end.connect = ""
	case wire.Established:
		end.byUs, end.graceful, end.ignored = false, false, 0
	case wire.UpdateIgnored:
		end.ignored++
	case wire.Ended:
		end.ignored = 0
		end.graceful = news.End.Graceful && !end.byUs
		if why := end.word(news.End); why != "" && !end.byUs {
			end.ended = why
		}
	}
}

// word is why a session has ended; "": no reason of one that was never there.
func (end *sessionEnd) word(e wire.End) string {
	switch {
	case e.Received != nil:
		return "received from the neighbour: " + notification(*e.Received)
	case e.Sent != nil:
		why := e.Why
		if e.Sent.Code == gobgp.BGP_ERROR_OPEN_MESSAGE_ERROR && e.Sent.Subcode == gobgp.BGP_ERROR_SUB_BAD_PEER_AS {
			why = fmt.Sprintf("as number mismatch expected %d, received %d", end.asn, e.ASN)
		}
		if why != "" {
			return "sent to the neighbour: " + notification(*e.Sent) + ": " + why
		}
		return "sent to the neighbour: " + notification(*e.Sent)
	case !e.Established:
		return ""
	case e.Why != "":
		return e.Why
	case e.Graceful:
		return "the connection was lost, the neighbour may be restarting"
	}
	return "the connection was lost"
}

// setUp notes whether a neighbour could be added to the server, and tells whether
// an error is a new one.
func (e *sessionEnds) setUp(a netip.Addr, err error) (fresh bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a]
	if end == nil {
		return err != nil // another router has come to its link meanwhile
	}
	was := end.connect
	if end.connect = ""; err != nil {
		end.connect = "cannot be set up: " + err.Error()
	}
	return err != nil && end.connect != was
}

// bfdLost is why BFD ends a session.
const bfdLost = "BFD has lost the path to the neighbour"

// overLimit notes that the session was ended by the prefix limit, which its NOTIFICATION
// may not tell: it is a Hard Reset then.
func (e *sessionEnds) overLimit(a netip.Addr) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a]; end != nil {
		end.ended = fmt.Sprintf("the neighbour sent more than %d routes", end.limit)
	}
}

// byUs notes why the session is about to be ended here, which the notification
// does not tell.
func (e *sessionEnds) byUs(a netip.Addr, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a]; end != nil {
		end.byUs, end.ended = true, why
	}
}

// lingers tells whether the routes of the neighbour's last session are kept for its
// restart.
func (e *sessionEnds) lingers(a netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a]
	return end != nil && end.graceful
}

// ignoredUpdates is how many UPDATEs of the present session were left out as their
// routes could not be read: what they say of the neighbour's routes is not known.
func (e *sessionEnds) ignoredUpdates(a netip.Addr) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a.Unmap()]; end != nil {
		return end.ignored
	}
	return 0
}

func (e *sessionEnds) of(a netip.Addr) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a.Unmap()]
	switch {
	case end == nil:
		return ""
	case end.connect == "":
		return end.ended
	case end.ended == "":
		return end.connect
	}
	return end.ended + "; since then: " + end.connect
}

// connectError words why a connection was not made. Of packets that a kernel
// drops on the way there is no more to see than that no answer came.
func connectError(err error, silent []string) string {
	if err == nil {
		return ""
	}
	why := err.Error()
	var call *os.SyscallError
	if errors.As(err, &call) {
		why = call.Err.Error()
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		why = "no answer, as when " + strings.Join(silent, " or ")
	}
	return "cannot connect: " + why
}

// notification words a NOTIFICATION message (RFC 4271 section 4.5) with the
// operator's text of RFC 9003, if there is one.
func notification(n wire.Notice) string {
	// A Hard Reset carries the real reason inside (RFC 8538 section 3.1).
	if n.Code == gobgp.BGP_ERROR_CEASE && n.Subcode == gobgp.BGP_ERROR_SUB_HARD_RESET && len(n.Data) >= 2 {
		n = wire.Notice{Code: n.Data[0], Subcode: n.Data[1], Data: n.Data[2:]}
	}
	text := gobgp.NewNotificationErrorCode(n.Code, n.Subcode).String()
	said := n.Code == gobgp.BGP_ERROR_CEASE &&
		(n.Subcode == gobgp.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN || n.Subcode == gobgp.BGP_ERROR_SUB_ADMINISTRATIVE_RESET)
	if said && len(n.Data) > 1 && int(n.Data[0]) <= len(n.Data)-1 {
		text += ": " + printable(n.Data[1:1+int(n.Data[0])])
	}
	return text
}

// printable is a neighbour's text for a terminal and a log.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, strings.ToValidUTF8(string(b), "."))
}
