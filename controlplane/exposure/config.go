package exposure

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Config is the part of the node's configuration that the translation reads.
type Config struct {
	// Ports, FloatingIPs and Gateways are what is exposed.
	Ports, FloatingIPs, Gateways bool
	// Networks are the physical networks and Prefixes those whose addresses are
	// exposed; empty means all.
	Networks []string
	Prefixes []netip.Prefix
	// NextHops, ICMPSource4, ICMPSource6 and NextHopMAC are those of evpn.Config.
	NextHops                 map[string][]netip.Addr
	ICMPSource4, ICMPSource6 netip.Addr
	NextHopMAC               intent.MAC
	// Northbound: that database is followed. LoadBalancing: so are the load balancers there.
	Northbound, LoadBalancing bool
}

// Used tells whether anything is to be exposed.
func (c Config) Used() bool { return c.Ports || c.FloatingIPs || c.Gateways }

// Needs adds to what other features need of OVN's rows.
func (c Config) Needs(n ovn.Needs) ovn.Needs {
	n.Exposure = c.Used()
	if c.Used() && c.Northbound {
		n.Gateways = c.answers
	}
	if c.FloatingIPs {
		n.Floating = c.network
	}
	return n
}

// answers tells whether Sluice answers for the default gateways of a provider network
// that rows name: the configuration does not say which, and the bridge has no port but
// OVN's and Sluice's, so that nobody else can.
func (c Config) answers(rows *ovn.Rows, s ovn.ProviderSwitch) bool {
	hops, listed := c.NextHops[s.Network]
	return c.network(s.Network) && (!listed || len(hops) > 0) && rows.OnlyOVN(s.Bridge)
}

func (c Config) network(name string) bool {
	return len(c.Networks) == 0 || slices.Contains(c.Networks, name)
}

func (c Config) address(a netip.Addr) bool {
	return len(c.Prefixes) == 0 || slices.ContainsFunc(c.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
