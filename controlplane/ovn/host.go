package ovn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// HostAddresses are the node's own addresses by the device that they are on. The
// device of a bridge has the bridge's name, and is the bridge's port LOCAL: what
// has an address there is the bridge's neighbour, as a VM behind a physical
// port is. No database has them.
type HostAddresses map[string][]netip.Addr

// SetHostAddresses replaces the node's own addresses, and tells whether those of
// a bridge changed that a physical network is mapped to, or any with Expose.
func (r *Rows) SetHostAddresses(all HostAddresses) (changed bool) {
	before, old := r.nodeFacts(), r.host
	r.host = all
	return !maps.Equal(before, r.nodeFacts()) || r.exposes && !maps.EqualFunc(old, all, slices.Equal)
}

// HostAddresses lists the node's own addresses on a bridge, lowest first.
func (r *Rows) HostAddresses(bridge string) []netip.Addr {
	return slices.SortedFunc(slices.Values(r.host[bridge]), netip.Addr.Compare)
}

// takeHost brings the node's own addresses in.
func (f *Follower) takeHost(all HostAddresses) {
	f.hostKnown = true
	changed := f.rows.SetHostAddresses(all)
	if f.loading != f.rows {
		changed = f.loading.SetHostAddresses(all) || changed
	}
	// What is to be known of a provider network depends on who is on its bridge.
	if changed {
		f.dirty.All = true
		f.discover()
	}
	f.loaded(nil)
	f.publish()
}

// hostFact is a bridge's part of nodeFacts.
func (r *Rows) hostFact(bridge string) string { return fmt.Sprint(r.HostAddresses(bridge)) }
