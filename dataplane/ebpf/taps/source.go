package taps

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Source is who may ask behind a tap, and the number that stands for it to the proxy.
type Source struct {
	// IfIndex is the tap's, and VLAN the tag of the frames; 0: they have none.
	IfIndex uint32
	VLAN    uint16
	MAC     intent.MAC
	// Addr is the IPv4 address. Invalid: all IPv6 link-local addresses with this MAC.
	Addr netip.Addr
	// Number stands for the source: see package identity for the addresses that are made
	// of it. It is that of one source only.
	Number uint32
	// Answer is the MAC address of the metadata port: what ARP and ND are answered
	// with, and what the guest sees replies come from.
	Answer intent.MAC
}

// Proxy is the pair of devices to the proxy's namespace: what is steered goes out of
// Host, and arrives at the other end, whose MAC address is Inside.
type Proxy struct {
	Host    uint32 // ifindex
	HostMAC intent.MAC
	Inside  intent.MAC
}
