package ovn

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// The keys of Chassis_Private.external_ids by which nodes know each other before
// BGP has told anything: where the fabric reaches a node.
const (
	KeyVTEP      = PublishPrefix + "vtep"
	KeyRouterMAC = PublishPrefix + "router-mac"
)

// Pairs are what a node with the address publishes.
func Pairs(a intent.FabricAddress) map[string]string {
	return map[string]string{KeyVTEP: a.VTEP.String(), KeyRouterMAC: a.RouterMAC.String()}
}

// ChassisAt is the name of a followed chassis, and where the fabric reaches it:
// the zero value while Sluice there has not published it, or not as it should.
func (r *Rows) ChassisAt(chassis UUID) (name string, at intent.FabricAddress) {
	id, ok := multimap.First(r.privateOf, chassis)
	if !ok {
		return "", at
	}
	row := r.private[id]
	vtep, err := netip.ParseAddr(row.ExternalIDs[KeyVTEP])
	if err != nil || vtep.Zone() != "" {
		return row.Name, at
	}
	mac, err := intent.ParseMAC(row.ExternalIDs[KeyRouterMAC])
	if err != nil || mac.IsZero() {
		return row.Name, at
	}
	return row.Name, intent.FabricAddress{VTEP: vtep.Unmap(), RouterMAC: mac}
}

// Siblings are where the fabric reaches the other nodes of this node's groups, as
// far as they have published it.
func (r *Rows) Siblings() []netip.Addr {
	var out []netip.Addr
	for id := range r.private {
		if name, at := r.ChassisAt(r.private[id].Chassis); at.VTEP.IsValid() && name != r.SystemID() {
			out = append(out, at.VTEP)
		}
	}
	return out
}

// others adds the conditions for the other members of the groups that this chassis
// is in. They are known before a gateway port moves: to ask for them then would
// take another round of questions, in which packets are lost.
func (r *Rows) others(own UUID, c ovsdb.Conditions) {
	members, chassis := map[UUID]struct{}{}, map[UUID]struct{}{}
	replaced := false
	for _, g := range r.haGroups {
		for _, id := range g.Members {
			members[id] = struct{}{}
			h, ok := r.ha[id]
			replaced = replaced || !ok
			if h.Chassis != "" && h.Chassis != own {
				chassis[h.Chassis] = struct{}{}
			}
		}
	}
	if replaced {
		// Most often by rows of the same chassis, which are not known yet.
		for _, p := range r.private {
			if p.Chassis != "" && p.Chassis != own {
				chassis[p.Chassis] = struct{}{}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		c["HA_Chassis"] = append(c["HA_Chassis"], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
	}
	for _, id := range slices.Sorted(maps.Keys(chassis)) {
		c["Chassis_Private"] = append(c["Chassis_Private"], ovsdb.Equal("chassis", ovsdb.UUID(id)))
	}
}

// memberOf tells whether a chassis is in an HA_Chassis_Group.
func (r *Rows) memberOf(group, chassis UUID) bool {
	return slices.ContainsFunc(r.haGroups[group].Members, func(id UUID) bool { return r.ha[id].Chassis == chassis })
}
