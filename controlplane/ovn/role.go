package ovn

import (
	"fmt"
	"slices"
	"strings"
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
	for _, p := range r.PortsAt(own.UUID) {
		if p.Type == TypeChassisRedirect || p.Type == TypeL3Gateway {
			return Role{true, fmt.Sprintf("gateway port %s is bound to this chassis", p.LogicalPort)}
		}
	}
	groups := make([]UUID, 0, len(r.haGroups))
	for id := range r.haGroups {
		groups = append(groups, id)
	}
	slices.Sort(groups)
	for _, id := range groups {
		for _, p := range r.PortsOfGroup(id) {
			if p.Type == TypeChassisRedirect {
				return Role{true, fmt.Sprintf("gateway port %s may come to this chassis (HA_Chassis_Group %s)", p.LogicalPort, r.haGroups[id].Name)}
			}
		}
	}
	return Role{false, "no enable-chassis-as-gw, and no gateway port names this chassis"}
}
