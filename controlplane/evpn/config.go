package evpn

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Mode is what BGP says of an exposed subnet. The zero value means: not stated
// here.
type Mode uint8

// The modes. They are bits: both is hosts and subnets.
const (
	AnnounceHosts   Mode = 1
	AnnounceSubnets Mode = 2
	AnnounceBoth    Mode = AnnounceHosts | AnnounceSubnets
)

// ParseMode reads hosts, subnets or both.
func ParseMode(s string) (Mode, bool) {
	switch s {
	case "hosts":
		return AnnounceHosts, true
	case "subnets":
		return AnnounceSubnets, true
	case "both":
		return AnnounceBoth, true
	}
	return 0, false
}

func (m Mode) String() string {
	switch m {
	case AnnounceHosts:
		return "hosts"
	case AnnounceSubnets:
		return "subnets"
	case AnnounceBoth:
		return "both"
	}
	return "default"
}

// VRFConfig is what the configuration says of one VNI.
type VRFConfig struct {
	// Import and Export replace the automatic route targets when not empty.
	Import, Export []intent.RouteTarget
	// Path is the VRF's path on this node.
	Path PathMode
	// Quiet: nothing of the VRF is announced. It is forwarded all the same.
	Quiet bool
}

// Config is the part of the node's configuration that the translation reads.
type Config struct {
	// ASN makes the automatic route targets of a gateway port without an AS of
	// its own.
	ASN  uint32
	VRFs map[intent.VNI]VRFConfig
	// Path is the path of VRFs for which none is stated; zero means PathAuto.
	// PathKernel is for the whole node: nothing else counts then.
	Path PathMode
	// NextHops are the next hops that Sluice serves, by physical network.
	NextHops map[string][]netip.Addr
	// ICMPSource4 and ICMPSource6 are the source of ICMP errors towards gateway
	// ports of which OVN's databases show no next hop.
	ICMPSource4, ICMPSource6 netip.Addr
	// NextHopMAC is the cloud-wide next-hop MAC.
	NextHopMAC intent.MAC
	// Announce is the mode of objects that state none; zero means hosts.
	Announce Mode
	// AnnounceNAT announces hosts and subnets that OVN translates, too.
	AnnounceNAT bool
	// HoldNATUnknown exposes no host or subnet of a router whose NAT rows
	// cannot be seen.
	HoldNATUnknown bool
	// DynamicRouting: routers with OVN's dynamic routing are Sluice's. The VRF's
	// identifier names the VNI where nothing nearer does, and what OVN advertises
	// of the router is exposed.
	DynamicRouting bool
	// Learn gives imported routes to routers with OVN's dynamic routing.
	Learn bool
	// Standby prepares for gateway ports that are elsewhere and may come.
	Standby bool
	// LoadBalancing: VIPs of load balancers that routers have are served.
	LoadBalancing bool
	// MaxVRFs is the largest number of VRFs; 0 means 4096.
	MaxVRFs int
}

// DefaultMaxVRFs is the limit when none is configured.
const DefaultMaxVRFs = 4096

func (c Config) maxVRFs() int {
	if c.MaxVRFs > 0 {
		return c.MaxVRFs
	}
	return DefaultMaxVRFs
}

func (c Config) announce() Mode {
	if c.Announce != 0 {
		return c.Announce
	}
	return AnnounceHosts
}
