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
