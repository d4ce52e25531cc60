package ovs

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// Open makes a Switch and a session of its own with the local Open vSwitch database, which
// the caller runs. It does no I/O. Of the session's configuration the endpoints are required;
// database, tables, conditions and handler are set here, and Config.Transact.
func Open(config Config, session ovsdb.Config) (*Switch, *ovsdb.Session, error) {
	var made *ovsdb.Session
	config.Transact = func(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.Result, error) {
		return made.Transact(ctx, ops...)
	}
	s := New(config)
	session.Database, session.Tables, session.Handler = vswitch.Database(), Tables(), s.Handle
	session.Conditions = ovsdb.Conditions{}
	for table := range session.Tables {
		session.Conditions[table] = []ovsdb.Clause{ovsdb.All()}
	}
	var err error
	if made, err = ovsdb.NewSession(session); err != nil {
		return nil, nil, err
	}
	return s, made, nil
}

// WaitRead waits until the database has been read, or ctx ends.
func (s *Switch) WaitRead(ctx context.Context) error {
	for {
		s.mu.Lock()
		read, modified := s.inSync, s.modified
		s.mu.Unlock()
		if read {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-modified:
		}
	}
}
