package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// serverLog passes the BGP server's messages to slog. Its Panic and Fatal only
// log: the server calls them for odd input and for sockets, and a node's daemon
// must outlive both.
type serverLog struct {
	log  *slog.Logger
	ends *sessionEnds
}

func (l serverLog) write(level slog.Level, event string, fields gobgplog.Fields) {
	l.ends.note(event, fields)
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("event", event)}
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

func (l serverLog) GetLevel() gobgplog.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
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

// sessionEnds keeps why each neighbour's session last ended. The server's API
// does not tell; its log does, in the fields of three events.
type sessionEnds struct {
	mu   sync.Mutex
	last map[netip.Addr]string
}

func (e *sessionEnds) note(event string, f gobgplog.Fields) {
	var why string
	switch event {
	case "sent notification":
		why = "sent to the neighbour: " + notification(f)
	case "received notification":
		why = "received from the neighbour: " + notification(f)
	case "Peer Down":
		reason := fmt.Sprint(f["Reason"])
		if strings.HasPrefix(reason, "notification-") || reason == "hard-reset" {
			return // the notification itself was noted just before
		}
		why = plainReason(reason)
	default:
		return
	}
	a, err := netip.ParseAddr(fmt.Sprint(f["Key"]))
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last[a.Unmap().WithZone("")] = why
}

func (e *sessionEnds) of(a netip.Addr) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last[a.Unmap().WithZone("")]
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
