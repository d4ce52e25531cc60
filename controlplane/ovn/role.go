package ovn

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// Role is what a node is to OVN.
type Role struct {
	// Gateway: gateway ports are, or may come, here.
	Gateway bool
	// Reason says which row makes it so, or that none does.
	Reason string
}

// Role tells whether this node is a gateway node, and why.
func (r *Rows) Role() Role {
	for o := range strings.SplitSeq(r.External("ovn-cms-options"), ",") {
		if strings.TrimSpace(o) == "enable-chassis-as-gw" {
			return Role{true, "enable-chassis-as-gw is in Open_vSwitch external_ids:ovn-cms-options"}
		}
	}
	own, ok := r.OwnChassis()
	if !ok {
		return Role{false, fmt.Sprintf("no Chassis row named %q yet", r.SystemID())}
	}
	if port, ok := r.firstPort(r.gatewaysAt.All(own.UUID)); ok {
		return Role{true, fmt.Sprintf("gateway port %s is bound to this chassis", port.LogicalPort)}
	}
	for _, id := range slices.Sorted(maps.Keys(r.haGroups)) {
		if port, ok := r.firstPort(r.redirects(id)); ok {
			return Role{true, fmt.Sprintf("gateway port %s may move to this chassis (HA_Chassis_Group %s)", port.LogicalPort, r.haGroups[id].Name)}
		}
	}
	return Role{false, "no enable-chassis-as-gw, and no gateway port names this chassis"}
}

// unregistered are the tables in which ovn-controller has no row of this node's name.
func (r *Rows) unregistered() (tables []string) {
	if _, ok := r.OwnChassis(); !ok {
		tables = append(tables, sb.ChassisTable)
	}
	for _, p := range r.private {
		if p.Name == r.SystemID() {
			return tables
		}
	}
	return append(tables, sb.ChassisPrivateTable)
}

// firstPort is the one with the lowest name.
func (r *Rows) firstPort(ids iter.Seq[UUID]) (best PortBinding, ok bool) {
	for id := range ids {
		if p := r.ports[id]; !ok || p.LogicalPort < best.LogicalPort {
			best, ok = p, true
		}
	}
	return best, ok
}

// redirects are the chassisredirect ports of an HA_Chassis_Group.
func (r *Rows) redirects(group UUID) iter.Seq[UUID] {
	return func(yield func(UUID) bool) {
		for id := range r.byGroup.All(group) {
			if r.ports[id].Type == TypeChassisRedirect && !yield(id) {
				return
			}
		}
	}
}
