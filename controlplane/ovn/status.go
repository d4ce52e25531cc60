package ovn

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Status is what a person asks of the follower.
type Status struct {
	SystemID string
	Role     Role
	InSync   InSync
	// Sessions are those that there are: vswitch, Southbound, Northbound.
	Sessions []ovsdb.Status
	// Err is a setting that cannot be followed, Publish the last refused write
	// to Chassis_Private; nil when there is none.
	Err, Publish error
}

// Status tells how following goes.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{SystemID: f.rows.SystemID(), Role: f.rows.Role(), InSync: f.inSync(), Err: f.err, Publish: f.publisher.lastError()}
	for _, from := range []*source{f.vswitch, f.sb, f.nb} {
		if from != nil {
			s.Sessions = append(s.Sessions, from.session.Status())
		}
	}
	return s
}

// View calls see with the rows; they are valid until it returns, and nothing is
// followed meanwhile.
func (f *Follower) View(see func(*Rows)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	see(f.rows)
}

// Publish says what Chassis_Private.external_ids of this chassis should hold
// under keys that begin with "sluice-": all of them. It returns when the request
// is noted; the outcome is in Status. Other keys are never touched.
func (f *Follower) Publish(pairs map[string]string) error { return f.publisher.want(pairs) }

// Transact sends one transaction to the Southbound database.
func (f *Follower) Transact(ctx context.Context, operations ...ovsdb.Operation) ([]ovsdb.Result, error) {
	f.mu.Lock()
	sb := f.sb
	f.mu.Unlock()
	if sb == nil {
		return nil, ovsdb.ErrNotConnected
	}
	return sb.session.Transact(ctx, operations...)
}
