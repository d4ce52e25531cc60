package ovsdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// ParseEndpoints is parseEndpoints, as "scheme address" pairs.
func ParseEndpoints(list string) ([]string, error) {
	endpoints, err := parseEndpoints(list)
	var out []string
	for _, e := range endpoints {
		out = append(out, e.scheme+" "+e.address)
	}
	return out, err
}

// CheckClause tells whether the clause fits the table's column.
func (d *Database) CheckClause(table string, clause Clause) error {
	return d.tables[table].checkClause(clause)
}

// RawClause makes a clause that no constructor makes.
func RawClause(column, function, value string) Clause {
	return Clause{column, Function(function), value}
}

// Normal is normal.
func (c Conditions) Normal() Conditions { return c.normal() }

// Same is equal of the normal forms.
func (c Conditions) Same(d Conditions) bool { return c.normal().equal(d.normal()) }

// Frames cuts a stream into messages.
func Frames(stream []byte) ([][]byte, error) {
	f := newFramer(bytes.NewReader(stream))
	var out [][]byte
	for {
		m, err := f.next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m)
	}
}

// Decoder runs messages through a session's decoding, without a connection.
type Decoder struct{ *Session }

// First applies a first reply as if found told that it continues the content.
func (d Decoder) First(raw json.RawMessage, found bool) error {
	err := d.applyFirst(raw, found)
	if err != nil {
		d.content.discard()
	}
	return err
}

// Notify applies a notification's parameters.
func (d Decoder) Notify(method string, params json.RawMessage) error {
	return d.processOne(&link{server: serverRows{}, told: true}, queued{message: message{Method: method, Params: params}})
}

// Flush is what the handler would get.
func (d Decoder) Flush() []Change { return d.content.flush() }

// ServerSchema parses a get_schema reply and tells of a column.
func (d *Database) ServerSchema(raw json.RawMessage, table, column string) (bool, error) {
	s, err := parseServerSchema(d, raw)
	return err == nil && s.has(table, column), err
}

// Suitable is what a row of _Server means; it has cid and seen of the cluster that rows
// were read from before.
func Suitable(row json.RawMessage, leaderOnly bool, cid string, seen int64) error {
	var raw rawRow
	if err := json.Unmarshal(row, &raw); err != nil {
		return err
	}
	r, err := decodeServerRow(raw)
	if err != nil {
		return err
	}
	if err := r.suitable(leaderOnly); err != nil {
		return err
	}
	if why := r.behind(origin{endpoint: "before", cid: cid, index: seen}); r.model == "clustered" && why != "" {
		return errors.New(why)
	}
	return nil
}

// WaitCalls waits until as many requests wait for their replies.
func (s *Session) WaitCalls(n int) {
	for {
		s.mu.Lock()
		c := s.conn
		s.mu.Unlock()
		c.mu.Lock()
		have := len(c.calls)
		c.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
