package octavia

import (
	"net/netip"

	"github.com/google/uuid"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

// olderMembers is the name space of the IDs of members that a row has without one.
var olderMembers = uuid.MustParse("2e8f6c1a-5b0d-5c43-9f0e-6a1d7b9c3e52")

// olderProtocol is that of rows whose provider wrote none: OVN takes it, too.
const olderProtocol = "tcp"

// complete gives a row that a provider before 8.0.0 wrote what rows have since: a protocol, and for
// each member an ID, which stays the same while nobody has written the row anew, and the subnet that
// has its address in the networks of the row. One that no subnet has stays without.
func complete(from northbound.Reader, r *rowform.Row) {
	if r.Protocol == "" && !r.Empty() {
		r.Protocol = olderProtocol
	}
	var subnets []network.Subnet
	read := false
	for i, p := range r.Pools {
		for j := range p.Members {
			m := &r.Pools[i].Members[j]
			if m.ID == "" {
				m.ID = uuid.NewSHA1(olderMembers, []byte(p.ID+" "+m.Addr.String())).String()
				r.Status.Set(m.ID, rowform.StatusNoMonitor)
			}
			if m.Subnet != "" {
				continue
			}
			if !read {
				subnets, read = subnetsOf(from, *r), true
			}
			m.Subnet = subnetWith(subnets, m.Addr.Addr())
		}
	}
}

// subnetsOf are those of the switches that a row counts, and of the one with its VIP's port.
func subnetsOf(from northbound.Reader, r rowform.Row) (out []network.Subnet) {
	for _, name := range switchesOf(from, r) {
		if ls, ok := northbound.One(from, northbound.SwitchByName, name, "name"); ok {
			if n, ok := network.Find(from, network.IDOf(ls)); ok {
				out = append(out, network.Subnets(from, n)...)
			}
		}
	}
	return out
}

func subnetWith(subnets []network.Subnet, a netip.Addr) string {
	for _, s := range subnets {
		if s.CIDR.Contains(a) {
			return s.ID
		}
	}
	return ""
}
