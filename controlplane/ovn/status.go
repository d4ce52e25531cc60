package ovn

import (
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Status is what a person asks of the follower.
type Status struct {
	SystemID string
	InSync   InSync
	// Sessions are those that there are: vswitch, Southbound, Northbound.
	Sessions []ovsdb.Status
	// SBErr and NBErr are why the settings of a database cannot be followed;
	// the session from before, if there is one, goes on. Publish is the last
	// write to Chassis_Private, or Chassis, that failed. They are nil when all is well.
	SBErr, NBErr, Publish error
	// While Southbound is in sync: the node's rows have all that is to be written, and the
	// tables without a row named SystemID.
	Published    bool
	Unregistered []string
	// Recalled is when the Northbound database was last in sync, if what was remembered of it
	// then is used.
	Recalled time.Time
	// DynamicRouting: the Southbound database is one of OVN 25.03 or later, whose
	// controllers exchange routes with the node (Advertised_Route, Learned_Route). False
	// as well before the first connection.
	DynamicRouting bool
}

// Status tells how following goes.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{
		SystemID: f.rows.SystemID(), InSync: f.inSync(),
		SBErr: f.sbTrouble.err(), NBErr: f.nbTrouble.err(), Publish: f.publisher.lastError(),
		Recalled: f.memory.until,
	}
	for _, from := range []*source{f.vswitch, f.sb, f.nb} {
		if from != nil {
			s.Sessions = append(s.Sessions, from.session.Status())
		}
	}
	if s.InSync.SB {
		s.Unregistered = f.rows.unregistered()
		s.Published = len(s.Unregistered) == 0 && f.publisher.published()
	}
	s.DynamicRouting = f.sb != nil && f.sb.session.Has("Advertised_Route", "")
	return s
}

// Northbound is where the Northbound database is that is followed, for one who writes to it:
// endpoints and files as in ovsdb.Config. It is an error while there is no connection.
func (f *Follower) Northbound() (endpoints string, tls ovsdb.TLSFiles, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.nb == nil:
		return "", tls, errors.New("there is no session with the Northbound database (ovn.nb)")
	case !f.nb.session.Status().Connected:
		return "", tls, ovsdb.ErrNotConnected
	}
	return f.nb.remote, f.nb.tls, nil
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

// PublishMetadata says what Neutron is to know of the metadata that this node serves. It
// returns when the request is noted; the outcome is in Status. Until it is called nothing
// is written of it. Without Needs.Metadata only the zero value means anything: what an
// earlier run published of networks goes.
func (f *Follower) PublishMetadata(a MetadataAgent) { f.publisher.wantAgent(a) }

// MetadataNetworks are those that the Southbound database has of this chassis as served, if
// Sluice wrote them.
func (f *Follower) MetadataNetworks() []string { return f.publisher.agentNetworks() }
