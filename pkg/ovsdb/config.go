package ovsdb

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Tables names the tables of a session and, for each, the columns; nil means all
// columns of the generated struct.
type Tables map[string][]string

// Keys names, by table and column, which keys the rows have of a column that is a
// map of strings; the others are left out. A cloud writes a lot beside what one
// reader needs, a dozen keys for each port, say.
type Keys map[string]map[string]func(key string) bool

// TLSFiles are PEM files, read anew at every connect. The server's certificate
// must be signed by CA; as in Open vSwitch its name is not looked at, since
// ovs-pki's certificates carry none that a client could know.
type TLSFiles struct {
	Cert, Key, CA string
}

// Config is all that a session is told. Database, Endpoints, Tables and Handler
// are required.
type Config struct {
	Database *Database
	// Endpoints is a list as in ovn-remote: "tcp:192.0.2.1:6642",
	// "ssl:[2001:db8::1]:6642", "unix:/run/ovn/ovnsb_db.sock", comma-separated.
	// They are tried in an order chosen at random at the start, so that many
	// nodes spread over the members of a cluster.
	Endpoints string
	// InOrder keeps the order of Endpoints.
	InOrder bool
	TLS     TLSFiles
	Tables  Tables
	// Keys that rows are limited to; columns that it does not name have all.
	Keys Keys
	// Conditions are the first ones; see Session.SetConditions.
	Conditions Conditions
	// LeaderOnly takes a member of a RAFT cluster only while it leads, and no standby: for who writes.
	LeaderOnly bool
	// Locks are asked for at each connect, RFC 7047 section 4.1.8; Batch.Locks says which are
	// held. A server lets one connection hold a lock, and others wait for it in turn; a lock ends
	// with the connection. In a cluster each member has locks of its own, so that LeaderOnly
	// belongs to them.
	Locks   []string
	Handler Handler
	// Logger gets connects and losses; none means silence.
	Logger *slog.Logger

	// InactivityProbe: after this long without a byte an echo request is sent,
	// after twice this the connection is given up. 0 means 10 s, a negative
	// value no probes.
	InactivityProbe time.Duration
	// CatchUp is how long a server is not used whose content may be older than what the
	// session has handed on, for it to catch up or another one to come back. After that the
	// first of them is used, since a database that was restored from a backup never catches
	// up. 0 means a minute.
	CatchUp time.Duration
	// ConnectTimeout bounds connecting to one endpoint, TLS included. 0 means 5 s.
	ConnectTimeout time.Duration
	// BackoffMin and BackoffMax bound the wait after all endpoints have failed.
	// It doubles, with jitter. 0 means 250 ms and 8 s.
	BackoffMin, BackoffMax time.Duration
}

// Defaults of Config.
const (
	DefaultInactivityProbe = 10 * time.Second
	DefaultCatchUp         = time.Minute
	DefaultConnectTimeout  = 5 * time.Second
	DefaultBackoffMin      = 250 * time.Millisecond
	DefaultBackoffMax      = 8 * time.Second
)

func (c *Config) setDefaults() error {
	if c.Database == nil || c.Handler == nil {
		return errors.New("ovsdb session: a database and a handler are required")
	}
	if len(c.Tables) == 0 {
		return fmt.Errorf("ovsdb session %s: no tables", c.Database.Name())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.InactivityProbe == 0 {
		c.InactivityProbe = DefaultInactivityProbe
	}
	if c.CatchUp <= 0 {
		c.CatchUp = DefaultCatchUp
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.BackoffMin <= 0 {
		c.BackoffMin = DefaultBackoffMin
	}
	if c.BackoffMax < c.BackoffMin {
		c.BackoffMax = max(DefaultBackoffMax, c.BackoffMin)
	}
	return nil
}
