package plane

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// expireInterval is how often all sessions are read for those that have expired.
const expireInterval = 30 * time.Second

// sessionReports begins the sources of what is reported of maps of sessions.
const sessionReports = "sessions of "

// ExpireSessions removes expired sessions, counts those that go on, and reports evictions, until
// ctx ends. of is whose sessions these are, for people.
func ExpireSessions(ctx context.Context, dp *ebpf.Dataplane, of string, reg *status.Registry, log *slog.Logger) error {
	reports := reg.Reporter(sessionReports + of)
	defer reports.Replace(nil)
	return loop.Every(ctx, expireInterval, nil, func() {
		err := dp.SweepFlows()
		ev, failed := dp.Reader().Evictions()
		if failed == nil {
			reports.Replace(evicted(ev, of))
		}
		err = errors.Join(err, failed, dp.SweepFlowFront(ctx))
		if err != nil && ctx.Err() == nil {
			log.Warn("cannot expire old sessions", "error", err)
		}
	})
}

// evicted tells of sessions that were evicted: for as long as answers of theirs may come.
func evicted(ev ebpf.Evictions, of string) []status.Object {
	if !ev.Held {
		return nil
	}
	detail := "the map of sessions was full within two hours"
	if ev.Evicting {
		detail = "the map of sessions is full, and evicts those that were idle for longest"
	}
	return []status.Object{{Kind: "sessions", Key: of, State: status.Warning, Reason: reason.SessionsEvicted, Error: detail}}
}
