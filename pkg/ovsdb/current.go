package ovsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Whether a server's content is as new as the rows that the session has handed on. A server may
// be behind them: a member of a cluster that catches up, a relay whose source says nothing
// more, a standby, a database that was restored from a backup. What shows that a content
// is current depends on the model of the server, docs/decisions/0024-current-content.md.

// errStandby ends the connection of a session that is to write to a server that takes no writes.
var errStandby = errors.New("this server takes no writes: another one is the active one")

// origin is where the handler's rows are from.
type origin struct {
	endpoint string // empty before the first connection
	cid      string // of the cluster; empty if it was none
	index    int64  // of the cluster's log
}

// see notes how far the server in use is.
func (o *origin) see(row serverRow) {
	if row.model == "clustered" && row.cid == o.cid {
		o.index = max(o.index, row.index)
	}
}

// current asks whether the server's content is as new as the handler's rows. It returns
// why that is not known, or "". An error says that the server cannot be used now.
func (s *Session) current(ctx context.Context, l *link) (behind string, err error) {
	from, first := s.origin, s.origin.endpoint == ""
	if s.config.LeaderOnly && l.row.model == "standalone" {
		if refuses, err := s.askWriter(ctx, l); err != nil || refuses != "" {
			return "", cmp.Or(err, errStandby)
		}
	}
	switch {
	case l.row.model == "clustered":
		return l.row.behind(from), nil
	case l.row.model == "relay":
		// Before the first rows, too: nobody else says that the source is there.
		behind, err = s.askWriter(ctx, l)
		if err != nil {
			err = fmt.Errorf("this relay's source: %w", err)
		}
	case first:
	case from.endpoint != l.endpoint.text:
		return fmt.Sprintf("this is another server than that of the rows, %s, and of no cluster", from.endpoint), nil
	default:
		behind, err = s.askWriter(ctx, l)
	}
	if first {
		behind = ""
	}
	return behind, err
}

// behind says why a member of a cluster may be behind.
func (row serverRow) behind(from origin) string {
	switch {
	case from.endpoint == "":
		return ""
	case row.cid != from.cid:
		return fmt.Sprintf("this server's cluster is not where the rows are from, %s", from.endpoint)
	case row.index < from.index:
		return fmt.Sprintf("this server is behind: at log entry %d, already seen %d", row.index, from.index)
	}
	return ""
}

// askWriter has the database's writer execute a transaction without effect. A relay hands
// it to its source, and hands on what the source wrote before it answers; what is read after the
// answer is as new as the source. A standby refuses it. ("commit" is the one
// operation without effect that relays do not answer themselves.)
func (s *Session) askWriter(ctx context.Context, l *link) (behind string, err error) {
	limit := 2 * s.config.InactivityProbe
	if limit < 0 {
		limit = 2 * DefaultInactivityProbe
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := l.request(limited, "transact", s.config.Database.name, map[string]any{"op": "commit", "durable": false})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("no answer to a transaction for %s", limit)
	case err != nil:
		return "", err
	}
	_, err = s.config.Database.results(raw, []Operation{{op: "commit"}})
	if refused, ok := errors.AsType[*OperationError](err); ok && refused.Name == notAllowed {
		return "this server takes no writes, so it may be behind the one that does", nil
	}
	return "", err
}

// useBehind says whether a server is used whose content may be older than the handler's
// rows: not before CatchUp has passed since the first such server was met. The error says
// why it is not used.
func (s *Session) useBehind(why string) error {
	now := time.Now()
	if s.behindSince.IsZero() {
		s.behindSince = now
	}
	if now.Sub(s.behindSince) >= s.config.CatchUp {
		return nil
	}
	s.mu.Lock()
	s.status.Behind = why
	s.mu.Unlock()
	return fmt.Errorf("the content may be older than what was read before: %s", why)
}

// firstContent opens the monitor at a server that may be behind, or is current (why is "").
// It refuses a content that may be older than the handler's rows, and does not even ask for it
// where the answer cannot show anything else.
func (s *Session) firstContent(ctx context.Context, l *link, columns map[string][]string, wanted Conditions, why string) (txn string, err error) {
	since := noTxn
	if s.lastTxn != "" && wanted.equal(s.acked) && equalColumns(columns, s.monitored) {
		since = s.lastTxn
	}
	if why != "" && since == noTxn {
		if err := s.useBehind(why); err != nil {
			return "", err
		}
	}
	requests := make(map[string]monitorRequest, len(columns))
	for name, list := range columns {
		requests[name] = monitorRequest{Columns: list, Where: l.schema.where(name, wanted[name])}
	}
	txn, found, err := s.monitor(ctx, l, requests, since)
	if err != nil {
		// What was applied of it is taken back, and what is there is at no transaction then.
		s.lastTxn = ""
		return "", err
	}
	if found {
		return txn, nil // it goes on from the rows that are here
	}
	if why == "" && since != noTxn && l.row.model == "clustered" && l.row.index == s.origin.index {
		// The rows may come before the index that they make.
		why = fmt.Sprintf("this server is at log entry %d, as the rows, and does not know their transaction", l.row.index)
	}
	l.behind = why
	if why != "" {
		err = s.useBehind(why)
	}
	return txn, err
}

// took notes that the rows are the server's from now on.
func (s *Session) took(l *link) {
	s.origin = origin{endpoint: l.endpoint.text, cid: l.row.cid, index: l.row.index}
	s.behindSince = time.Time{}
	if l.behind != "" {
		s.log.Warn("database content may be older than what was read before", "endpoint", l.endpoint.text, "reason", l.behind)
	}
}
