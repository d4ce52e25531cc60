package bgp

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// FamilyOf is the address family that carries a route.
func FamilyOf(vni intent.VNI, p netip.Prefix) Families {
	switch {
	case vni != intent.DefaultVRF:
		return FamilyEVPN
	case p.Addr().Is4():
		return FamilyIPv4
	}
	return FamilyIPv6
}
