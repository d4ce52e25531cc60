package ovn

import (
	"cmp"
	"slices"
)

// AdvertisedRoute is a row of SB Advertised_Route, which OVN has from 25.03: what
// ovn-northd would have the fabric know of a router with dynamic routing.
type AdvertisedRoute struct {
	UUID UUID
	// Datapath is the router.
	Datapath UUID
	// LogicalPort is the Port_Binding row of the router port that packets for
	// the prefix leave by, or that has the address.
	LogicalPort UUID
	IPPrefix    string
	// TrackedPort is the Port_Binding row of the port that has a single address;
	// empty when the row names none.
	TrackedPort UUID
}

// Key is the row's _uuid.
func (a AdvertisedRoute) Key() UUID { return a.UUID }

func (AdvertisedRoute) table() Table { return TableAdvertisedRoute }

// LogicalSwitch is a row of NB Logical_Switch.
type LogicalSwitch struct {
	UUID UUID
	// ExternalIDs has the keys of the BGPVPN vocabulary.
	ExternalIDs map[string]string
	// ACLs are read with Needs.ACLs.
	ACLs []UUID
	// With Needs.Clients.
	LoadBalancers, LoadBalancerGroups []UUID
}

// Key is the row's _uuid.
func (s LogicalSwitch) Key() UUID { return s.UUID }

func (LogicalSwitch) table() Table { return TableLogicalSwitch }

// AdvertisedOn lists what OVN advertises of a router, by prefix.
func (r *Rows) AdvertisedOn(router UUID) []AdvertisedRoute {
	var out []AdvertisedRoute
	for id := range r.advertisedOn.All(router) {
		out = append(out, r.advertised[id])
	}
	slices.SortFunc(out, func(a, b AdvertisedRoute) int {
		return cmp.Or(cmp.Compare(a.IPPrefix, b.IPPrefix), cmp.Compare(a.LogicalPort, b.LogicalPort),
			cmp.Compare(a.TrackedPort, b.TrackedPort), cmp.Compare(a.UUID, b.UUID))
	})
	return out
}

// Advertises tells whether OVN advertises a route by way of a router port.
func (r *Rows) Advertises(port PortBinding) bool { return r.advertisedBy.Has(port.UUID) }

// PortRow finds a Port_Binding by its _uuid.
func (r *Rows) PortRow(id UUID) (PortBinding, bool) {
	p, ok := r.ports[id]
	return p, ok
}

// Switch is the Northbound row of a switch datapath; false when there is no
// Northbound session or the row has not come.
func (r *Rows) Switch(datapath UUID) (LogicalSwitch, bool) {
	s, ok := r.switches[r.datapaths[datapath].NBUUID()]
	return s, ok
}

func (r *Rows) putAdvertised(c Change) {
	if old, ok := r.advertised[c.UUID]; ok {
		r.advertisedOn.Delete(old.Datapath, c.UUID)
		r.advertisedBy.Delete(old.LogicalPort, c.UUID)
	}
	store(r.advertised, c)
	if a, ok := r.advertised[c.UUID]; ok {
		r.advertisedOn.Add(a.Datapath, c.UUID)
		r.advertisedBy.Add(a.LogicalPort, c.UUID)
	}
}

// advertisedRelates tells, before the change is applied, whether a router port
// gets its first row or loses its last one. The rows between are as many as VMs.
func (r *Rows) advertisedRelates(c Change) bool {
	old, had := r.advertised[c.UUID]
	next, has := c.New.(AdvertisedRoute)
	if had && has && old.LogicalPort == next.LogicalPort {
		return false
	}
	return has && !r.advertisedBy.Has(next.LogicalPort) || had && r.advertisedBy.Count(old.LogicalPort) == 1
}
