package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// serverLog passes the BGP server's messages to slog. Its Panic and Fatal only
// log: the server calls them for odd input and for sockets, and a node's daemon
// must outlive both.
type serverLog struct {
	log     *slog.Logger
	handles *Handles
	// limit is for what is above the debug level.
	limit *loglimit.Limit
	// leaving: this node ends its sessions, and what the server says of that is no warning.
	leaving *atomic.Bool
}

func (l serverLog) write(level slog.Level, event string, fields gobgplog.Fields) {
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
			attrs = append(attrs, slog.String("neighbor", l.handles.Name(fmt.Sprint(v))))
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

// GetLevel implements the server's logger.
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
	if l.leaving.Load() {
		level = min(level, slog.LevelInfo)
	}
	l.write(level, msg, f)
}
