package northbound

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Part names the tables, columns and rows that a transaction reads.
type Part struct {
	Tables     ovsdb.Tables
	Conditions ovsdb.Conditions
}

// Global finds the row of NB_Global, under the empty key.
var Global = Declare("options", func(*nb.NBGlobal) []string { return []string{""} }, nil)

// Once is Store.Commit over a session of its own that reads part of the database, for programs
// that write now and then. Each server does for it that forwards transactions, not the leader
// alone. f may ask indices for rows of the part only.
func Once(ctx context.Context, config Config, part Part, comment string, f func(*Tx) error) error {
	s, err := newStore(config, ovsdb.Config{Tables: part.Tables, Conditions: part.Conditions})
	if err != nil {
		return err
	}
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	err = s.Commit(ctx, comment, f)
	if why := s.Status().LastError; errors.Is(err, ErrUnavailable) && why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	end()
	return errors.Join(err, <-ended)
}
