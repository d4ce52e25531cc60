package ovn

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// BalancersNamed are the load balancers that are followed and have a name, or that _uuid,
// by _uuid. Octavia has a row for each protocol, all with one name.
func (r *Rows) BalancersNamed(name string) []LoadBalancer {
	var out []LoadBalancer
	for _, b := range r.balancers {
		if b.Name == name || string(b.UUID) == name {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b LoadBalancer) int { return cmp.Compare(a.UUID, b.UUID) })
	return out
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
