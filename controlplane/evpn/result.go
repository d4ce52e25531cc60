package evpn

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Result is the translation of one router, before the rules between routers.
type Result struct {
	Router ovn.UUID
	Name   string
	// Pending: the router's NAT rows are still to come, and what depends on them
	// is not in the result.
	Pending bool
	// Unseen: a switch at the router's ports is still to come from the Northbound
	// database.
	Unseen bool
	// Unnamed: Pending or Unseen, and nothing that can be seen names the VNI of some
	// gateway port: the Northbound database may.
	Unnamed bool
	// Elsewhere: a gateway port that names a VNI is on another node.
	Elsewhere bool
	// Unbalanced: a gateway port is here, and which load balancers the router has cannot be seen.
	Unbalanced bool
	// Gateways are those that are here, and after them those that may come, each
	// sorted by logical port.
	Gateways []GatewayResult
	// Bridges are the provider bridges of the gateway ports that are here or may
	// come, sorted.
	Bridges []intent.BridgeKey
	Errors  []ObjectError
	Notes   []Note
}

func (r Result) empty() bool {
	return !r.Unnamed && len(r.Gateways) == 0 && len(r.Bridges) == 0 && len(r.Errors) == 0 && len(r.Notes) == 0
}

// names tells whether a gateway port has the VNI.
func (r Result) names(vni intent.VNI) bool {
	return slices.ContainsFunc(r.Gateways, func(g GatewayResult) bool { return g.Gateway.VNI == vni })
}

// GatewayResult is one gateway port of this node and what is behind it.
type GatewayResult struct {
	Gateway intent.Gateway
	// Standby: the port is elsewhere, at Place, and may come.
	Standby  bool
	Place    intent.Place
	Localnet string
	Policy   Policy
	// Path is what the port says of its VRF's path.
	Path PathMode
	// OVNTable is the routing table that ovn-controller keeps for the router; 0 for
	// none.
	OVNTable uint32
	// Learner is the zero value where nothing is given to OVN by the port.
	Learner intent.Learner
	// Served are sorted by prefix.
	Served []intent.Served
	// Provider is the switch whose known ports' addresses are not answered for.
	// Empty when only listed next hops are answered.
	Provider ovn.UUID
	// Networks are those of the gateway port, with its own addresses.
	Networks []netip.Prefix
	// Own are the gateway port's own addresses, as far as they are exposed.
	Own     []netip.Addr
	Subnets []Subnet
	// Behind are the networks of the router's interfaces, exposed or not, and Translated
	// what of them OVN gives another address; both for routers with VIPs alone.
	Behind, Translated []netip.Prefix
	// VIPs are those of the router, behind its first gateway port of the VNI.
	VIPs []VIP
}

// Policy is what a gateway port says of its VRF.
type Policy struct {
	ASN            uint32
	Export, Import intent.RouteTargets
	AutoImport     bool
}

// Subnet is an exposed subnet.
type Subnet struct {
	// Object is the switch-side port of the router interface.
	Object string
	Prefix netip.Prefix
	// Announce: the subnet itself is announced.
	Announce bool
	// Advertised: OVN advertises it, and it is no network of an interface.
	Advertised bool
	// Blocks are the parts of the subnet that OVN translates.
	Blocks []netip.Prefix
	// Hosts are sorted by port name; only those that get a row of their own.
	Hosts []Host
}

// Host is an address of a port inside an exposed subnet: announced, or blocked.
type Host struct {
	Object string
	Addr   netip.Addr
	Block  bool
}
