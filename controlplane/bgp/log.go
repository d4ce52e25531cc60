package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// serverLog passes the BGP server's messages to slog. Its Panic and Fatal only
// log: the server calls them for odd input and for sockets, and a node's daemon
// must outlive both.
type serverLog struct {
	log    *slog.Logger
	ends   *sessionEnds
	trials *trials
	// limit is for what is above the debug level.
	limit *loglimit.Limit
}

func (l serverLog) write(level slog.Level, event string, fields gobgplog.Fields) {
	l.ends.note(event, fields)
	l.trials.note(event, fields)
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("event", event)}
	if level > slog.LevelDebug {
		ok, skipped := l.limit.Allow(event, fmt.Sprint(fields["Key"]), time.Now())
		if !ok {
			return
		}
		if skipped > 0 {
			attrs = append(attrs, slog.Int("skipped", skipped))
		}
	}
	for k, v := range fields {
		switch k {
		case "Topic":
		case "Key":
			attrs = append(attrs, slog.String("neighbor", fmt.Sprint(v)))
		case "Error", "Err", "err", "error":
			attrs = append(attrs, slog.String("error", fmt.Sprint(v)))
		default:
			attrs = append(attrs, slog.String(k, fmt.Sprint(v)))
		}
	}
	l.log.LogAttrs(ctx, level, "bgp server", attrs...)
}

func (l serverLog) Panic(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l serverLog) Fatal(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l serverLog) Error(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l serverLog) Info(msg string, f gobgplog.Fields)  { l.write(slog.LevelInfo, msg, f) }
func (l serverLog) Debug(msg string, f gobgplog.Fields) { l.write(slog.LevelDebug, msg, f) }
func (l serverLog) SetLevel(gobgplog.LogLevel)          {}

// GetLevel asks for everything as long as a session is missing: why a connection
// was not made is a message of the debug level.
func (l serverLog) GetLevel() gobgplog.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) || l.ends.missing() {
		return gobgplog.DebugLevel
	}
	return gobgplog.InfoLevel
}

// Warn lowers one event: neighbours that batch their updates, FRR among them,
// withdraw routes that they never sent.
func (l serverLog) Warn(msg string, f gobgplog.Fields) {
	level := slog.LevelWarn
	if msg == "No matching path for withdraw found, may be path was not installed into table" {
		level = slog.LevelDebug
	}
	l.write(level, msg, f)
}

// eventIgnored is the server's for an UPDATE whose routes it cannot read. It says that
// it has taken the family from the session (RFC 7606 section 2), shows the neighbour
// without it from then on, and takes its next UPDATEs all the same.
const eventIgnored = "Capability was disabled"

const (
	// eventLingers is the server's as a session ends by what RFC 4724 section 4.2 and
	// RFC 8538 take for the neighbour's restart.
	eventLingers = "peer graceful restart"
	// eventBusy is the server's for a request that it leaves out.
	eventBusy = "previous setting admin state request is still remaining"
)

// sessionEnds keeps why each neighbour's session last ended, and why it has not
// come up since. The server's API does not tell; its log does, in the fields of
// some events.
type sessionEnds struct {
	down atomic.Int32 // neighbours without a session

	mu   sync.Mutex
	last map[netip.Addr]*sessionEnd
}

type sessionEnd struct {
	silent    []string // what leaves a connection of this neighbour without an answer
	limit     uint32   // Neighbor.MaxPrefixes
	up        bool
	overLimit bool   // in this session or the last one
	ignored   int    // UPDATEs of this session of which the server could not read the routes
	pathLost  bool   // it was ended here, for a reason that is known, such as BFD's
	ended     string // why the last session ended
	lingers   bool   // and the neighbour's routes are kept for its restart
	busy      bool   // the server had not done yet what it was asked before
	connect   string // why the latest connection was not made; "" since there was one
}

func newSessionEnds(c Config) *sessionEnds {
	e := &sessionEnds{last: map[netip.Addr]*sessionEnd{}}
	for _, n := range c.Neighbors {
		if n.Address.IsValid() {
			e.last[n.Address.WithZone("")] = &sessionEnd{silent: n.silent(c.ASN), limit: n.MaxPrefixes}
		}
	}
	e.down.Store(int32(len(c.Neighbors)))
	return e
}

// replace takes in a neighbour that was found on a link, in the place of another
// one; old is invalid if there was none.
func (e *sessionEnds) replace(old netip.Addr, n Neighbor, asn uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := &sessionEnd{silent: n.silent(asn), limit: n.MaxPrefixes}
	if was := e.last[old.WithZone("")]; was != nil {
		end.ended = was.ended
		if was.up {
			e.down.Add(1)
		}
		delete(e.last, old.WithZone(""))
	}
	e.last[n.Address.WithZone("")] = end
}

// silent words what of the configuration may not be as the neighbour has it.
func (n Neighbor) silent(asn uint32) []string {
	out := []string{"the neighbour is down"}
	if n.Password != "" {
		out = append(out, "its password is another one")
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

func (e *sessionEnds) missing() bool { return e.down.Load() > 0 }

func (e *sessionEnds) note(event string, f gobgplog.Fields) {
	switch event {
	case "sent notification", "received notification", "Peer Down", "Peer Up", "failed to connect", "prefix limit reached", eventIgnored, eventLingers, eventBusy:
	default:
		return
	}
	a, err := netip.ParseAddr(fmt.Sprint(f["Key"]))
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a.Unmap().WithZone("")]
	if end == nil {
		return
	}
	switch event {
	case "failed to connect":
		err, _ := f["Error"].(error)
		end.connect = connectError(err, end.silent)
		return
	case eventBusy:
		end.busy = true
		return
	case eventLingers:
		end.lingers = !end.pathLost
	case "Peer Up":
		end.overLimit, end.pathLost, end.lingers, end.ignored = false, false, false, 0
		if !end.up {
			end.up = true
			e.down.Add(-1)
		}
	case eventIgnored:
		end.ignored++
	case "Peer Down":
		if end.up {
			end.up = false
			e.down.Add(1)
		}
		// A notification was noted just before.
		if reason := fmt.Sprint(f["Reason"]); !strings.HasPrefix(reason, "notification-") && reason != "hard-reset" && !end.overLimit && !end.pathLost {
			end.ended = plainReason(reason)
		}
	case "prefix limit reached":
		end.overLimit = true
		end.ended = fmt.Sprintf("the neighbour sent more than %d routes", end.limit)
	case "sent notification":
		// That of the prefix limit is a Hard Reset without the reason in it.
		if !end.overLimit && !end.pathLost {
			end.ended = "sent to the neighbour: " + notification(f)
		}
	case "received notification":
		end.ended = "received from the neighbour: " + notification(f)
	}
	// All of these need a connection.
	end.connect = ""
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

// pathLost notes that the session is about to be ended by BFD.
func (e *sessionEnds) pathLost(a netip.Addr) { e.byUs(a, "BFD has lost the path to the neighbour") }

// byUs notes why the session is about to be ended here, which the notification
// does not tell.
func (e *sessionEnds) byUs(a netip.Addr, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a]; end != nil {
		end.pathLost, end.ended = true, why
	}
}

// asked forgets that the server was busy; a request follows.
func (e *sessionEnds) asked(a netip.Addr) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a]; end != nil {
		end.busy = false
	}
}

// wasBusy tells whether the server has left out the request since asked.
func (e *sessionEnds) wasBusy(a netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a]
	return end != nil && end.busy
}

// lingers tells whether the routes of the neighbour's last session are kept for its
// restart.
func (e *sessionEnds) lingers(a netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a]
	return end != nil && end.lingers
}

// ignoredUpdates is how many UPDATEs of the present session were left out as their
// routes could not be read: what they say of the neighbour's routes is not known.
func (e *sessionEnds) ignoredUpdates(a netip.Addr) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end := e.last[a.Unmap().WithZone("")]; end != nil && end.up {
		return end.ignored
	}
	return 0
}

func (e *sessionEnds) of(a netip.Addr) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.last[a.Unmap().WithZone("")]
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
func notification(f gobgplog.Fields) string {
	code, ok := f["Code"].(uint8)
	subcode, _ := f["Subcode"].(uint8)
	if !ok {
		if err, ok := f["Data"].(error); ok {
			return err.Error()
		}
		return "notification"
	}
	// A Hard Reset carries the real reason inside (RFC 8538 section 3.1).
	if inner, ok := f["Data"].([]byte); ok && len(inner) >= 2 && code == wire.BGP_ERROR_CEASE && subcode == wire.BGP_ERROR_SUB_HARD_RESET {
		code, subcode = inner[0], inner[1]
	}
	text := wire.NewNotificationErrorCode(code, subcode).String()
	if said, ok := f["Communicated-Reason"].(string); ok && said != "" {
		text += ": " + said
	}
	return text
}

func plainReason(reason string) string {
	switch reason {
	case "read-failed", "write-failed":
		return "the connection was lost"
	case "graceful-restart":
		return "the connection was lost, the neighbour may be restarting"
	}
	return strings.ReplaceAll(reason, "-", " ")
}
