package ovn

import (
	"slices"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// newLocal is the session with the vswitch database. Its handler does not wait for the loop:
// what Config.VSwitchHandler needs may be in the next batch, and the loop be long at work.
func (f *Follower) newLocal() (*source, error) {
	tables, keys, conditions := local(f.cfg.Needs, f.cfg.VSwitchTables)
	session, err := ovsdb.NewSession(ovsdb.Config{
		Database: vswitch.Database(), Endpoints: f.cfg.VSwitch, TLS: f.cfg.TLS, Logger: f.log, InactivityProbe: f.cfg.InactivityProbe,
		Tables: tables, Keys: keys, Conditions: conditions,
		Handler: func(b ovsdb.Batch) {
			if f.cfg.VSwitchHandler != nil {
				f.cfg.VSwitchHandler(b)
			}
			f.local.add(b)
		},
	})
	if err != nil {
		return nil, err
	}
	return &source{setting: setting{f.cfg.VSwitch, f.cfg.TLS}, session: session, generation: session.Generation()}, nil
}

// localChanges are a batch's, without what only Config.VSwitchHandler needs.
func (f *Follower) localChanges(b ovsdb.Batch) []Change {
	list := changes(b)
	if !f.cfg.Needs.VMs {
		list = slices.DeleteFunc(list, func(c Change) bool { return c.Table == TableInterface })
	}
	return list
}

// batches is a queue without a bound.
type batches struct {
	ready loop.Signal

	mu   sync.Mutex
	list []ovsdb.Batch
}

func newBatches() batches { return batches{ready: loop.NewSignal()} }

func (q *batches) add(b ovsdb.Batch) {
	q.mu.Lock()
	q.list = append(q.list, b)
	q.mu.Unlock()
	q.ready.Send()
}

func (q *batches) take() []ovsdb.Batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}
