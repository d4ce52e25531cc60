package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Result is what one operation gave.
type Result struct {
	// Count of rows that an update, mutate or delete matched.
	Count int
	// UUID of an inserted row.
	UUID string
	// Rows that a select found, with the columns that it named.
	Rows []Row
}

// wireResult is an element of a transact reply, RFC 7047 section 4.1.3.
type wireResult struct {
	Count   int             `json:"count"`
	UUID    json.RawMessage `json:"uuid"`
	Rows    []rawRow        `json:"rows"`
	Error   string          `json:"error"`
	Details string          `json:"details"`
}

// Transact sends one transaction and waits for the answer: all of it is
// committed and there is one result an operation, or none of it and the error
// says why: ErrNotConnected, ErrConflict, ErrNotOwner, ErrExists, *PermissionError,
// *ConstraintError, *OperationError, or a mistake in an operation. The exception, after which it
// may be either, is ErrOutcomeUnknown. The changes arrive at the handler as any
// others do, possibly after Transact has returned.
func (s *Session) Transact(ctx context.Context, operations ...Operation) ([]Result, error) {
	return s.transact(ctx, false, operations)
}

// Commit is Transact that returns when the handler has returned from a batch with all that the
// server has sent before its answer: the changes of this transaction, and those of every one that
// it conflicted with. Without an operation it is a barrier. The handler must not call it.
func (s *Session) Commit(ctx context.Context, operations ...Operation) ([]Result, error) {
	return s.transact(ctx, true, operations)
}

func (s *Session) transact(ctx context.Context, inOrder bool, operations []Operation) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, schema := s.conn, s.schema
	s.mu.Unlock()
	if c == nil {
		return nil, ErrNotConnected
	}
	params := []any{s.config.Database.name}
	for i, o := range operations {
		w, err := o.encode(s.config.Database, schema)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		params = append(params, w)
	}
	raw, err := c.await(ctx, call{method: "transact", reply: make(chan message, 1), queued: inOrder}, params...)
	if err != nil {
		refused, was := errors.AsType[*rpcError](err)
		if was && refused.Name == "canceled" || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return nil, err
	}
	results, err := s.config.Database.results(raw, operations)
	refusal, refused := errors.AsType[*OperationError](err)
	switch {
	case err == nil:
	case refused && s.config.LeaderOnly && refusal.Name == notAllowed: // it was the active one before
		c.close(errStandby)
		return nil, ErrNotConnected
	case !refused:
		c.close(err)
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return results, err
}

// answer hands on the replies that wait for the handler.
func (l *link) answer() {
	for _, q := range l.answered {
		q.call.reply <- q.message
	}
	l.answered = nil
}

func (d *Database) results(raw json.RawMessage, operations []Operation) ([]Result, error) {
	// An operation after a failed one has null in its place. An extra element
	// is the error of the commit.
	var wire []*wireResult
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, protocolError("transact reply: %w", err)
	}
	for i, w := range wire {
		if w == nil || w.Error == "" {
			continue
		}
		e := OperationError{Index: i, Name: w.Error, Details: w.Details}
		if i < len(operations) {
			e.Op, e.Table = operations[i].op, operations[i].table
		}
		return nil, newOperationError(e)
	}
	if len(wire) < len(operations) {
		return nil, protocolError("%d results for %d operations", len(wire), len(operations))
	}
	out := make([]Result, len(operations))
	for i := range operations {
		if wire[i] == nil {
			return nil, protocolError("no result for operation %d", i)
		}
		out[i].Count = wire[i].Count
		for _, raw := range wire[i].Rows {
			row, err := d.selected(operations[i].table, raw)
			if err != nil {
				return nil, fmt.Errorf("result of operation %d: %w", i, err)
			}
			out[i].Rows = append(out[i].Rows, row)
		}
		if len(wire[i].UUID) == 0 {
			continue
		}
		var err error
		if out[i].UUID, err = decodeUUID(wire[i].UUID); err != nil {
			return nil, fmt.Errorf("result of operation %d: %w", i, err)
		}
	}
	return out, nil
}

func decodeUUID(raw json.RawMessage) (string, error) {
	name, rest, err := tagged(raw)
	if err != nil {
		return "", err
	}
	if name != "uuid" {
		return "", protocolError("%q where a UUID belongs", name)
	}
	var s string
	err = json.Unmarshal(rest, &s)
	return s, err
}
