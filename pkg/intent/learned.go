package intent

import (
	"fmt"
	"net/netip"
)

// LearnedDevice is the device that routes of LearnedRoutes are through. No packet ever
// goes there: ovn-controller reads the routes, and nothing looks them up.
const LearnedDevice = "sluice-learned"

// LearnedKey is a prefix in a routing table that ovn-controller reads.
type LearnedKey struct {
	// Table is the number of the kernel's routing table.
	Table uint32
	// Prefix is masked, as in RouteKey.
	Prefix netip.Prefix
}

func (k LearnedKey) String() string { return fmt.Sprintf("table %d %s", k.Table, k.Prefix) }

// LearnedRoute gives a destination that is behind other nodes to a logical router: it
// is a route of the kernel that ovn-controller finds and writes to SB Learned_Route.
// The table LearnedRoutes is LearnedKey → LearnedRoute.
type LearnedRoute struct {
	Key LearnedKey
	// Via is the next hop that the router will ask for: one that Sluice serves, of
	// the prefix's family.
	Via netip.Addr
}

// CanLearn tells whether a routing table may hold rows of LearnedRoutes: it is none of
// the kernel's own (252 to 255 of linux/rtnetlink.h, the main table among them), and
// none of those above the VNIs, which VRFs on the kernel path may have.
func CanLearn(table uint32) bool {
	return table != 0 && (table < 252 || table > 255) && table <= uint32(MaxVNI)
}

// Learner is a gateway port here by which ovn-controller brings routes of the kernel
// into OVN (SB Learned_Route).
type Learner struct {
	Gateway GatewayKey
	// Port is the Port_Binding's logical_port, for people.
	Port string
	VNI  VNI
	// Table is the routing table that ovn-controller reads for the router.
	Table uint32
	// Via4 and Via6 are next hops that Sluice serves. Invalid: none of the family.
	Via4, Via6 netip.Addr
	// Networks are those that the router is connected to.
	Networks PrefixSet
}
