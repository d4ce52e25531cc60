package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Network is one whose requests come in through a namespace of its own: there guests have
// their own addresses, and the network tells those apart that have one address.
type Network struct {
	// Name is as intent.MetadataPort has it.
	Name string `json:"network"`
	// Namespace is that in which the proxy listens, by its iproute2 name.
	Namespace string `json:"namespace"`
	// Device is the one inside, with the metadata addresses.
	Device string `json:"device"`
	// IPv6: fe80::a9fe:a9fe is served, too.
	IPv6 bool `json:"ipv6,omitempty"`
	// Members are the ports that are served there. Ports of the network that are served from
	// their tap are none of them.
	Members []Member `json:"members,omitempty"`
}

// Member is a port on a network that is served in a namespace.
type Member struct {
	Name      string               `json:"port"`
	Instance  string               `json:"instance,omitempty"`
	Project   string               `json:"project,omitempty"`
	Addresses []intent.PortAddress `json:"guests,omitempty"`
	// Answer is what the daemon looks up after a restart; the proxy has no use for it.
	Answer intent.MAC `json:"answer,omitzero"`
}

// longest name of a namespace; that of a file may have 255 bytes.
const maxNamespace = 200

// check refuses what could lead a path elsewhere: both names become part of one.
func (n *Network) check() error {
	switch {
	case n.Name == "":
		return fmt.Errorf("a network has no name")
	case n.Namespace == "" || n.Namespace == "." || n.Namespace == ".." || len(n.Namespace) > maxNamespace || strings.ContainsAny(n.Namespace, "/\x00"):
		return fmt.Errorf("network %q: %q is no name of a namespace", n.Name, n.Namespace)
	case n.Device == "" || n.Device == "." || n.Device == ".." || len(n.Device) > 15 || strings.ContainsAny(n.Device, "/%\x00 \t\n"):
		return fmt.Errorf("network %q: %q is no name of a device", n.Name, n.Device)
	}
	return nil
}

// members finds those of a network.
type members struct {
	network *Network
	// byAddr and byMAC have the one member with an address, or nil where several have it:
	// then it says nothing.
	byAddr map[netip.Addr]*Member
	byMAC  map[intent.MAC]*Member
}

func newMembers(n *Network) *members {
	m := &members{network: n, byAddr: map[netip.Addr]*Member{}, byMAC: map[intent.MAC]*Member{}}
	for i := range n.Members {
		m.add(n.Members[i].Addresses, &n.Members[i])
	}
	return m
}

func (m *members) add(guests []intent.PortAddress, one *Member) {
	for _, g := range guests {
		only(m.byMAC, g.MAC, one)
		if g.Addr.IsValid() {
			only(m.byAddr, g.Addr.Unmap(), one)
		}
	}
}

// reserve keeps the addresses of a port that is served from its tap from being a member's:
// its requests never come in by the namespace, so who uses them there is another one.
func (m *members) reserve(p *Port) {
	if p.Row != nil {
		m.add(p.Row.Addresses, nil)
	}
}

func only[K comparable](all map[K]*Member, key K, m *Member) {
	if other, had := all[key]; had && other != m {
		m = nil
	}
	all[key] = m
}

// FindOn tells whose the address of a connection is that came in through the namespace of
// a network. A link-local address is found by the MAC address that it is made of (RFC
// 4291, appendix A). Where none or several have it, or a port that is served from its tap,
// it is nobody's. So is another address of IPv6: the namespace has no route to it.
func (t *Table) FindOn(network string, a netip.Addr) (p Port, guest netip.Addr, ok bool) {
	if t == nil || t.on[network] == nil {
		return Port{}, netip.Addr{}, false
	}
	on := t.on[network]
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLinkLocalUnicast() {
		return Port{}, netip.Addr{}, false
	}
	m, known := on.byAddr[a]
	if mac, made := madeOf(a); made {
		// By address or by MAC: whichever way, it has to be one.
		other, also := on.byMAC[mac]
		switch {
		case !known:
			m, known = other, also
		case also && other != m:
			m = nil
		}
	}
	if !known || m == nil {
		return Port{}, netip.Addr{}, false
	}
	return Port{Name: m.Name, Instance: m.Instance, Project: m.Project, Network: network, Row: &Row{Addresses: m.Addresses}}, a, true
}

// madeOf is the MAC address in a link-local address' interface identifier.
func madeOf(a netip.Addr) (mac intent.MAC, ok bool) {
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return mac, false
	}
	b := a.As16()
	if b[11] != 0xff || b[12] != 0xfe {
		return mac, false
	}
	return intent.MAC{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]}, true
}

// Networks are all that are served in namespaces, by name.
func (t *Table) Networks() []Network {
	if t == nil {
		return nil
	}
	return slices.Clone(t.networks)
}
