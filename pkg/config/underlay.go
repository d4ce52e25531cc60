package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// Underlay is the node's own part in the routed fabric.
type Underlay struct {
	// Announce is what the node announces as plain unicast, with itself as next hop.
	Announce UnderlayAnnounce `yaml:"announce"`
	// Install puts learned unicast routes into the kernel's main table.
	Install Install `yaml:"install"`
}

// UnderlayAnnounce is what the node announces as plain unicast. When sluiced stops, the routes stay
// at the neighbours as bgp.gracefulRestart says.
type UnderlayAnnounce struct {
	// VTEP announces the tunnel address as /32 or /128, while the fabric device receives packets.
	VTEP bool `yaml:"vtep"`
	// Prefixes are further prefixes, which are always announced.
	Prefixes []netip.Prefix `yaml:"prefixes"`
}

// Install puts learned unicast routes into the kernel's main table, with protocol
// number 116. Routes of others, connected networks and the node's own addresses
// are never touched.
type Install struct {
	// Enabled is whether learned unicast routes are installed.
	Enabled bool `yaml:"enabled"`
	// Metric is the metric of the routes. The kernel prefers other routes to the same prefix with a
	// lower metric. FRR's zebra reads the upper byte as a distance, and removes its own routes with
	// a larger one: the default, 254 times 2^24, has the largest distance that zebra uses.
	Metric uint32 `yaml:"metric"`
	// Accept lists the prefixes that are installed. The default accepts default routes and all
	// single addresses; {prefix: 0.0.0.0/0, le: 32} and {prefix: ::/0, le: 128} accept everything.
	Accept []PrefixMatch `yaml:"accept"`
	// Source is the source address of the node's own packets on these routes, at most one per
	// family, while the node has the address. Empty: the VTEP address for its family, the kernel's
	// choice for the other.
	Source []netip.Addr `yaml:"source"`
}

// PrefixMatch is an entry of a prefix list, as routers have them.
type PrefixMatch struct {
	// Prefix contains the prefixes that match. Required.
	Prefix netip.Prefix `yaml:"prefix"`
	// GE is the shortest length that matches. 0: the length of prefix.
	GE uint8 `yaml:"ge"`
	// LE is the longest length that matches. 0: the length of prefix, or with ge any.
	LE uint8 `yaml:"le"`
}

// Family is an address family of a BGP session.
type Family string

// The families.
const (
	FamilyEVPN Family = "evpn"
	FamilyIPv4 Family = "ipv4"
	FamilyIPv6 Family = "ipv6"
)

// UnmarshalText reads a family.
func (f *Family) UnmarshalText(b []byte) error {
	return configfile.OneOf(f, b, FamilyEVPN, FamilyIPv4, FamilyIPv6)
}

var (
	anyIPv4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	anyIPv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// lastResort is a metric above all that others give their routes, for the kernel and
// for FRR's zebra.
const lastResort = 254 << 24

// Used tells whether the node has a part in the underlay.
func (u Underlay) Used() bool {
	return u.Announce.VTEP || len(u.Announce.Prefixes) > 0 || u.Install.Enabled
}

// completeUnderlay fills in the families of neighbours that are given none.
func (c *Config) completeUnderlay() {
	for i := range c.Underlay.Install.Source {
		c.Underlay.Install.Source[i] = c.Underlay.Install.Source[i].Unmap()
	}
	for i := range c.BGP.Neighbors {
		n := &c.BGP.Neighbors[i]
		if len(n.Families) > 0 {
			continue
		}
		n.Families = []Family{FamilyEVPN}
		switch near := n.MultihopTTL == 0 && (n.External || n.ASN != c.BGP.ASN); {
		case !c.Underlay.Used() && !c.Exposure.Used():
		case n.Interface != "":
			n.Families = append(n.Families, FamilyIPv4, FamilyIPv6)
		case near && n.Address.Is4():
			n.Families = append(n.Families, FamilyIPv4)
		case near:
			n.Families = append(n.Families, FamilyIPv6)
		}
	}
}

func (check rules) validateUnderlay(c *Config) {
	u := &c.Underlay
	check.underlayReaches(c)
	for i, p := range u.Announce.Prefixes {
		key := fmt.Sprintf("underlay.announce.prefixes[%d]", i)
		switch a := p.Addr(); {
		case !p.IsValid():
			check.FailAt(key, "missing; write a prefix like 192.0.2.0/24")
		case p != p.Masked():
			check.FailAt(key, "%s has bits beyond its length; write %s", p, p.Masked())
		case a.Is4In6() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsLoopback() || a.IsUnspecified() && p.Bits() > 0:
			check.FailAt(key, "%s is no prefix to announce; use a unicast one", p)
		case slices.Contains(u.Announce.Prefixes[:i], p):
			check.FailAt(key, "%s is given twice; remove one", p)
		}
	}
	if u.Install.Metric == 0 {
		check.FailAt("underlay.install.metric", "0 would replace routes of others without a metric; use 1 to 4294967295")
	}
	for i, m := range u.Install.Accept {
		check.prefixMatch(fmt.Sprintf("underlay.install.accept[%d]", i), m)
	}
	families := map[bool]bool{}
	for i, a := range u.Install.Source {
		key := fmt.Sprintf("underlay.install.source[%d]", i)
		if !a.IsValid() || !a.IsGlobalUnicast() || a.Zone() != "" {
			check.FailAt(key, "%s is no source address; use a unicast address of the node", a)
		}
		if families[a.Is4()] {
			check.FailAt(key, "%s is the second of its family; keep one", a)
		}
		families[a.Is4()] = true
	}
}

// underlayReaches finds what no neighbour would be told, and what none would tell.
func (check rules) underlayReaches(c *Config) {
	u := c.Underlay
	if u.Used() && c.Roles == RoleNone {
		check.FailAt("underlay", "a node with `roles: none` has no part in the underlay; use `roles: auto`, or remove underlay")
		return
	}
	v4, v6 := c.BGP.takes(FamilyIPv4), c.BGP.takes(FamilyIPv6)
	const fix = "; give the one that routes for this node `families: [evpn, %s]`, or [%s] without EVPN"
	reaches := func(key string, a netip.Addr) {
		switch {
		case len(c.BGP.Neighbors) == 0:
		case !v4 && !v6:
			check.FailAt(key, "no neighbour takes plain unicast"+fix, "ipv4", "ipv4")
		case a.Is4() && !v4:
			check.FailAt(key, "no neighbour takes plain IPv4 unicast"+fix, "ipv4", "ipv4")
		case a.Is6() && !v6:
			check.FailAt(key, "no neighbour takes plain IPv6 unicast"+fix, "ipv6", "ipv6")
		}
	}
	if u.Announce.VTEP {
		reaches("underlay.announce.vtep", c.Fabric.VTEP.Unmap())
	}
	for i, p := range u.Announce.Prefixes {
		reaches(fmt.Sprintf("underlay.announce.prefixes[%d]", i), p.Addr())
	}
	if u.Install.Enabled {
		reaches("underlay.install.enabled", netip.Addr{})
	}
}

// takes tells whether any neighbour has a family.
func (b BGP) takes(f Family) bool {
	return slices.ContainsFunc(b.Neighbors, func(n Neighbor) bool { return slices.Contains(n.Families, f) })
}

func (check rules) prefixMatch(key string, m PrefixMatch) {
	bits := uint8(m.Prefix.Addr().BitLen())
	switch {
	case !m.Prefix.IsValid():
		check.FailAt(key+".prefix", "missing; write a prefix like 10.0.0.0/8")
	case m.Prefix != m.Prefix.Masked():
		check.FailAt(key+".prefix", "%s has bits beyond its length; write %s", m.Prefix, m.Prefix.Masked())
	case m.GE != 0 && (int(m.GE) < m.Prefix.Bits() || m.GE > bits):
		check.FailAt(key+".ge", "%d is no length within %s; use %d to %d", m.GE, m.Prefix, m.Prefix.Bits(), bits)
	case m.LE != 0 && (int(m.LE) < m.Prefix.Bits() || m.LE > bits || m.LE < m.GE):
		check.FailAt(key+".le", "%d is no length within %s; use %d to %d", m.LE, m.Prefix, max(m.Prefix.Bits(), int(m.GE)), bits)
	}
}

// maxInterface is the longest name of a link (IFNAMSIZ without its final zero).
const maxInterface = 15

func (check rules) neighborInterface(n *Neighbor, key string) {
	switch {
	case len(n.Interface) > maxInterface || strings.ContainsAny(n.Interface, "/ %\t"):
		check.FailAt(key+".interface", "%q is no name of a link; use one like eth1", n.Interface)
	case n.Address.IsValid():
		check.FailAt(key+".address", "interface is given too; keep one of them")
	case n.LocalAddress.IsValid():
		check.FailAt(key+".localAddress", "interface is given too, and uses link-local addresses; remove it")
	case n.MultihopTTL != 0:
		check.FailAt(key+".multihopTTL", "interface is given too, and the peer is on that link; remove it")
	case n.BFD.Enabled:
		check.FailAt(key+".bfd.enabled", "interface is given, and BFD needs the peer's address; give it as address, such as fe80::1%%%s, in place of interface", n.Interface)
	}
}

func (check rules) sameInterface(b *BGP, i int) {
	for j := range b.Neighbors[:i] {
		if b.Neighbors[j].Interface == b.Neighbors[i].Interface {
			check.FailAt(fmt.Sprintf("bgp.neighbors[%d].interface", i), "%s is already neighbors[%d]; remove one", b.Neighbors[i].Interface, j)
		}
	}
}

func (check rules) neighborFamilies(n *Neighbor, key string) {
	if n.External && n.ASN != 0 {
		check.FailAt(key+".external", "asn is given too; keep one of them")
	}
	for i, f := range n.Families {
		switch {
		case slices.Contains(n.Families[:i], f):
			check.FailAt(fmt.Sprintf("%s.families[%d]", key, i), "%s is given twice; remove one", f)
		case f == FamilyIPv6 && n.Address.Is4():
			check.FailAt(fmt.Sprintf("%s.families[%d]", key, i), "IPv6 prefixes have no next hop in a session with IPv4 addresses; use the peer's IPv6 address")
		}
	}
}
