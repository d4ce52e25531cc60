package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Monitor ids. A session has one monitor for its content and one for _Server.
const (
	dataMonitor   = "data"
	serverMonitor = "server"
)

// noTxn is what a client that remembers nothing sends in monitor_cond_since.
const noTxn = "00000000-0000-0000-0000-000000000000"

// monitorRequest is a <monitor-cond-request> of ovsdb-server(7).
type monitorRequest struct {
	Columns []string `json:"columns"`
	Where   []any    `json:"where,omitempty"`
}

// link is one connection's state, of Run's goroutine.
type link struct {
	*conn
	endpoint endpoint
	server   serverRows
	told     bool      // the server has _Server
	row      serverRow // what _Server says of the database; zero if not told
	// behind is why the content may be older than the handler's rows were; "" if it is not.
	behind string
	schema *serverSchema
	// asked is the condition change under way; nil if none is.
	asked           Conditions
	askedGeneration uint64
	// answered are replies whose callers get them when the handler has what came before.
	answered []queued
	held     heldLocks
}

// attempt connects to one endpoint and serves until the connection ends. It tells
// whether the content was in sync with it at least once.
func (s *Session) attempt(ctx context.Context, e endpoint) (synced bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	nc, err := e.dial(dialCtx, s.config.TLS)
	if err != nil {
		return false, err
	}
	c := newConn(nc, s.config.InactivityProbe)
	var group errgroup.Group
	group.Go(func() error { return c.readLoop() })
	group.Go(func() error { return c.writeLoop() })
	group.Go(func() error { return c.probeLoop() })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			c.close(ctx.Err())
		case <-c.done:
		}
		return nil
	})
	l := &link{conn: c, endpoint: e, server: serverRows{}, held: heldLocks{}}
	synced, err = s.serve(ctx, l)
	if l.asked != nil {
		// Rows may or may not follow the change that was under way.
		s.lastTxn = ""
	}
	c.close(err)
	_ = group.Wait() // their errors are the reason of the close that serve saw
	return synced, err
}

// serve opens the monitors and follows them.
func (s *Session) serve(ctx context.Context, l *link) (synced bool, err error) {
	if err := s.openServer(ctx, l); err != nil {
		return false, err
	}
	if err := s.openData(ctx, l); err != nil {
		s.content.discard() // back to what the handler has
		return false, err
	}
	s.connected(l)
	if err := l.askLocks(s.config.Locks); err != nil {
		return true, err
	}
	for {
		s.deliver(l, true)
		l.answer()
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-s.changed:
		case <-l.ready:
		case <-l.done:
		}
		if err := s.step(l); err != nil {
			return true, err
		}
	}
}

// openServer follows _Server, if the server has it (Open vSwitch 2.9 and later),
// and refuses a server that cannot serve the database.
func (s *Session) openServer(ctx context.Context, l *link) error {
	columns := []string{"name", "model", "connected", "leader", "schema", "cid", "index"}
	raw, err := l.request(ctx, "monitor_cond", serverDatabase, serverMonitor,
		map[string]monitorRequest{"Database": {Columns: columns}})
	var refused *rpcError
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return err
	}
	l.told = true
	var updates tableUpdates
	if err := json.Unmarshal(raw, &updates); err != nil {
		return protocolError("_Server: %w", err)
	}
	if err := l.server.update(updates); err != nil {
		return err
	}
	return s.checkServer(l)
}

// checkServer says why the server is not to be used any more.
func (s *Session) checkServer(l *link) error {
	if !l.told {
		return nil
	}
	row, ok, err := l.server.find(s.config.Database.name)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("this server has no database %s", s.config.Database.name)
	}
	if err := row.suitable(s.config.LeaderOnly); err != nil {
		return err
	}
	l.row = row
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == l.conn { // its content is the handler's
		s.origin.see(row)
	}
	s.status.Model, s.status.Leader = row.model, row.leader
	return nil
}

// openData probes the schema and opens the one monitor of the content.
func (s *Session) openData(ctx context.Context, l *link) error {
	// Asked first: the content is read after the answer.
	why, err := s.current(ctx, l)
	if err != nil {
		return err
	}
	raw, err := l.request(ctx, "get_schema", s.config.Database.name)
	if err != nil {
		return err
	}
	l.schema, err = parseServerSchema(s.config.Database, raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.schema = l.schema
	s.status.SchemaVersion = l.schema.version
	wanted, generation := s.wanted, s.generation
	s.mu.Unlock()

	columns := l.schema.request(s.config.Tables)
	txn, err := s.firstContent(ctx, l, columns, wanted, why)
	if err != nil {
		return err
	}
	s.lastTxn, s.monitored = txn, columns
	s.acked, s.ackedGeneration = wanted, generation
	return nil
}

// monitor opens the monitor with the best method that the server knows and
// applies its first reply.
func (s *Session) monitor(ctx context.Context, l *link, requests map[string]monitorRequest, since string) (txn string, found bool, err error) {
	raw, err := l.request(ctx, "monitor_cond_since", s.config.Database.name, dataMonitor, requests, since)
	var refused *rpcError
	if errors.As(err, &refused) && refused.Name == "unknown method" {
		raw, err = l.request(ctx, "monitor_cond", s.config.Database.name, dataMonitor, requests)
		if err != nil {
			return "", false, err
		}
		return "", false, s.applyFirst(raw, false)
	}
	if err != nil {
		return "", false, err
	}
	// [<found>, <last-txn-id>, <table-updates2>]
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) != 3 {
		return "", false, protocolError("a monitor_cond_since reply of %d parts", len(parts))
	}
	if err := errors.Join(json.Unmarshal(parts[0], &found), json.Unmarshal(parts[1], &txn)); err != nil {
		return "", false, protocolError("monitor_cond_since: %w", err)
	}
	if found && since == noTxn {
		return "", false, protocolError("the server found a transaction that was not asked for")
	}
	if txn == noTxn {
		txn = ""
	}
	return txn, found, s.applyFirst(parts[2], found)
}

func (s *Session) applyFirst(raw json.RawMessage, found bool) error {
	var updates tableUpdates
	if err := json.Unmarshal(raw, &updates); err != nil {
		return protocolError("first content: %w", err)
	}
	if !found {
		return s.content.replace(updates)
	}
	s.mu.Lock()
	s.status.Resumed++
	s.mu.Unlock()
	return s.content.update(updates)
}

func (s *Session) connected(l *link) {
	s.took(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = l.conn
	s.status.Connects++
	s.status.Behind = l.behind
	delete(s.unusable, l.endpoint.text)
	s.status.Connected, s.status.Endpoint, s.status.Since = true, l.endpoint.text, time.Now()
	s.log.Info("database connected", "endpoint", l.endpoint.text, "model", s.status.Model,
		"leader", s.status.Leader, "schema", l.schema.version)
}

// step applies all that has arrived, then asks for what is wanted by now.
func (s *Session) step(l *link) error {
	ended := false
	select {
	case <-l.done: // seen before draining: nothing comes after it
		ended = true
	default:
	}
	for _, q := range l.drain() {
		if err := s.processOne(l, q); err != nil {
			return err
		}
	}
	if ended {
		return l.reason()
	}
	return s.askConditions(l)
}

func (s *Session) processOne(l *link, q queued) error {
	if q.isReply {
		switch q.call.method {
		case "transact":
			l.answered = append(l.answered, q)
			return nil
		case "lock", "unlock", "steal":
			return l.lockAnswered(q)
		default:
			return s.conditionsAnswered(l, q)
		}
	}
	switch q.Method {
	case "locked", "stolen":
		return l.lockChanged(q)
	case "update2", "update3":
		return s.notified(l, q)
	case "monitor_canceled":
		return errCanceled
	default: // not asked for, without effect
		return nil
	}
}

// notified applies [<id>, <table-updates2>] or [<id>, <last-txn-id>, <table-updates2>].
func (s *Session) notified(l *link, q queued) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(q.Params, &parts); err != nil {
		return protocolError("%s: %w", q.Method, err)
	}
	want := 2
	if q.Method == "update3" {
		want = 3
	}
	if len(parts) != want {
		return protocolError("%s with %d parameters", q.Method, len(parts))
	}
	var id string
	var updates tableUpdates
	if err := errors.Join(json.Unmarshal(parts[0], &id), json.Unmarshal(parts[want-1], &updates)); err != nil {
		return protocolError("%s: %w", q.Method, err)
	}
	if id == serverMonitor {
		if err := l.server.update(updates); err != nil {
			return err
		}
		return s.checkServer(l)
	}
	if id != dataMonitor {
		return protocolError("an update for the monitor %.40q, which was not asked for", id)
	}
	txn := ""
	if want == 3 {
		if err := json.Unmarshal(parts[1], &txn); err != nil {
			return protocolError("%s: %w", q.Method, err)
		}
	}
	if err := s.content.update(updates); err != nil {
		// Some of it is applied. Back to what the handler has; the next
		// connection reloads.
		s.content.discard()
		s.lastTxn = ""
		return err
	}
	s.lastTxn = txn
	return nil
}

// askConditions sends what has changed of the conditions, one request at a time.
func (s *Session) askConditions(l *link) error {
	s.mu.Lock()
	wanted, generation := s.wanted, s.generation
	s.mu.Unlock()
	if l.asked != nil || s.ackedGeneration == generation {
		return nil
	}
	changes := make(map[string][]monitorRequestChange)
	for name := range s.monitored {
		if !slices.Equal(wanted[name], s.acked[name]) {
			changes[name] = []monitorRequestChange{{Where: l.schema.where(name, wanted[name])}}
		}
	}
	if len(changes) == 0 { // back to what it was, or tables that the server lacks
		s.acked, s.ackedGeneration = wanted, generation
		return nil
	}
	l.asked, l.askedGeneration = wanted, generation
	return l.start(call{method: "monitor_cond_change", queued: true}, dataMonitor, dataMonitor, changes)
}

// monitorRequestChange is a <monitor-cond-update-request>.
type monitorRequestChange struct {
	Where []any `json:"where"`
}

// conditionsAnswered: the server has sent the rows before this reply.
func (s *Session) conditionsAnswered(l *link, reply queued) error {
	if _, err := reply.result(reply.call.method); err != nil {
		return err
	}
	s.acked, s.ackedGeneration = l.asked, l.askedGeneration
	l.asked = nil
	return nil
}
