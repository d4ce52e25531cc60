package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// Database is a connection to a cloud's database. It is for one goroutine.
type Database struct {
	name string
	conn net.Conn
	in   *json.Decoder
	stop func() bool
}

// OpenDatabase connects to the database nb or sb of a cloud. The connection ends
// with ctx, or when it was idle for some seconds: it answers no probes meanwhile.
func (l *Lab) OpenDatabase(ctx context.Context, cloud, db string) (*Database, error) {
	conn, err := dialFirst(ctx, strings.Split(l.sockets(cloud, db), ","))
	if err != nil {
		return nil, err
	}
	return &Database{
		name: dbNames[db],
		conn: conn, in: json.NewDecoder(conn), stop: context.AfterFunc(ctx, func() { conn.Close() }),
	}, nil
}

// dialFirst connects to the first server that is there.
func dialFirst(ctx context.Context, endpoints []string) (conn net.Conn, err error) {
	var dialer net.Dialer
	for _, e := range endpoints {
		if conn, err = dialer.DialContext(ctx, "unix", strings.TrimPrefix(e, "unix:")); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// Close ends the connection.
func (d *Database) Close() error {
	d.stop()
	return d.conn.Close()
}

// Transact runs one transaction on the database nb or sb of a cloud, on a
// connection of its own.
func (l *Lab) Transact(ctx context.Context, cloud, db string, last any, ops ...string) error {
	d, err := l.OpenDatabase(ctx, cloud, db)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Transact(last, ops...)
}

// Transact runs one transaction (RFC 7047 section 4.1.3), and reads the last
// operation's result into last if that is not nil.
func (d *Database) Transact(last any, ops ...string) error {
	request := fmt.Sprintf(`{"method":"transact","id":1,"params":[%q,%s]}`, d.name, strings.Join(ops, ","))
	if _, err := d.conn.Write([]byte(request)); err != nil {
		return err
	}
	result, err := d.reply()
	if err != nil {
		return fmt.Errorf("the answer of %s: %w", d.name, err)
	}
	for _, r := range result {
		var failed struct{ Error, Details string }
		if err := json.Unmarshal(r, &failed); err != nil {
			return fmt.Errorf("the answer of %s: %w", d.name, err)
		}
		if failed.Error != "" {
			return fmt.Errorf("%s: %s: %s", d.name, failed.Error, failed.Details)
		}
	}
	if last == nil || len(result) == 0 {
		return nil
	}
	return json.Unmarshal(result[len(result)-1], last)
}

// reply reads messages until the one that answers.
func (d *Database) reply() ([]json.RawMessage, error) {
	for {
		var m struct {
			Method string
			ID     any
			Error  json.RawMessage
			Result []json.RawMessage
		}
		if err := d.in.Decode(&m); err != nil {
			return nil, err
		}
		switch {
		case m.Method == "echo":
			if _, err := d.conn.Write([]byte(`{"id":"echo","result":[],"error":null}`)); err != nil {
				return nil, err
			}
		case m.ID == float64(1):
			if s := string(m.Error); s != "" && s != "null" {
				return nil, fmt.Errorf("%s", tail(s, 500))
			}
			return m.Result, nil
		}
	}
}
