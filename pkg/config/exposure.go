package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Exposure is what this node exposes without EVPN: single addresses of provider networks, announced
// as plain unicast with the node as next hop and forwarded in the default VRF.
// external_ids:sluice-expose=false excludes a port.
type Exposure struct {
	// Ports exposes the addresses of ports of VMs that are bound to this chassis
	// on a switch with a localnet port: VMs on provider networks. on or off.
	Ports Switch `yaml:"ports"`
	// FloatingIPs exposes the external addresses of routers' NAT, such as floating IPs: a
	// distributed one on the chassis of its VM, a centralised one on the chassis of the gateway
	// port. Southbound has them in Port_Binding.nat_addresses: IPv4, and only with
	// options:nat-addresses=router on the switch's port. Northbound, where ovn.nb is set, has those
	// of IPv6, too. on or off.
	FloatingIPs Switch `yaml:"floatingIPs"`
	// Gateways exposes the gateway ports' own addresses. on or off.
	Gateways Switch `yaml:"gateways"`
	// Networks are the physical networks whose addresses are exposed, by their names in
	// ovn-bridge-mappings. Empty: all.
	Networks []string `yaml:"networks"`
	// Prefixes are the prefixes whose addresses are exposed. Empty: all.
	Prefixes []netip.Prefix `yaml:"prefixes"`
	// Devices are the links on which packets for exposed addresses arrive, and on which the answers
	// leave. Empty: the links of the paths to the BGP neighbours.
	Devices []string `yaml:"devices"`
}

// Used tells whether anything is exposed.
func (e Exposure) Used() bool {
	return e.Ports == SwitchOn || e.FloatingIPs == SwitchOn || e.Gateways == SwitchOn
}

func (check rules) validateExposure(c *Config) {
	e := c.Exposure
	for i, n := range e.Networks {
		key := fmt.Sprintf("exposure.networks[%d]", i)
		switch {
		case n == "" || strings.ContainsAny(n, ":, \t"):
			check.FailAt(key, "%q is no physical network; write its name as in ovn-bridge-mappings", n)
		case slices.Contains(e.Networks[:i], n):
			check.FailAt(key, "%s is given twice; remove one", n)
		}
	}
	for i, p := range e.Prefixes {
		key := fmt.Sprintf("exposure.prefixes[%d]", i)
		switch a := p.Addr(); {
		case !p.IsValid():
			check.FailAt(key, "missing; write a prefix like 192.0.2.0/24")
		case p != p.Masked():
			check.FailAt(key, "%s has bits beyond its length; write %s", p, p.Masked())
		case a.Is4In6() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsLoopback():
			check.FailAt(key, "%s has no address that can be exposed; use a unicast one", p)
		case slices.Contains(e.Prefixes[:i], p):
			check.FailAt(key, "%s is given twice; remove one", p)
		}
	}
	for i, name := range e.Devices {
		key := fmt.Sprintf("exposure.devices[%d]", i)
		switch {
		case name == "" || len(name) > maxInterface || strings.ContainsAny(name, "/ %\t"):
			check.FailAt(key, "%q is no name of a link; use one like eth1", name)
		case strings.HasPrefix(name, "sluice"):
			check.FailAt(key, "%s is Sluice's own; name a link of the underlay", name)
		case slices.Contains(e.Devices[:i], name):
			check.FailAt(key, "%s is given twice; remove one", name)
		}
	}
	if !e.Used() {
		return
	}
	if c.Path == PathKernel {
		check.FailAt("exposure", "needs the eBPF programs, which `path: kernel` leaves out; use `path: auto`, and path kernel for single VRFs in evpn.vrfs")
	}
	if c.Roles == RoleNone {
		check.FailAt("exposure", "a node with `roles: none` exposes nothing; use `roles: auto`, or remove exposure")
	}
	if len(c.BGP.Neighbors) > 0 && !c.BGP.takes(FamilyIPv4) && !c.BGP.takes(FamilyIPv6) {
		check.FailAt("exposure", "no neighbour takes plain unicast; give one `families: [evpn, ipv4]` or `families: [evpn, ipv6]`")
	}
}
