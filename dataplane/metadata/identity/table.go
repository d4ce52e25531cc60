package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Port is a port whose requests are steered.
type Port struct {
	// Name is the Port_Binding's logical_port.
	Name string `json:"port"`
	// Instance, Project and Network are those of a request's answer; Instance is empty
	// as long as OVN does not name it.
	Instance string `json:"instance,omitempty"`
	Project  string `json:"project,omitempty"`
	Network  string `json:"network,omitempty"`
	// Numbers4 are those of its IPv4 addresses. Two may be of one address: each MAC
	// address that has it has a number.
	Numbers4 map[Number]netip.Addr `json:"numbers4,omitempty"`
	// Numbers6 are those of its MAC addresses, each of which stands for all link-local
	// addresses behind it.
	Numbers6 map[Number]intent.MAC `json:"numbers6,omitempty"`
	// Row is what the daemon looks up after a restart; the proxy has no use for it.
	Row *Row `json:"row,omitempty"`
}

// Assigned tells whether a guest's address is one that OVN has of the port, or made of a MAC
// address of it. Of IPv6 a guest may choose others.
func (p *Port) Assigned(guest netip.Addr) bool {
	if guest.Is4() {
		return true
	}
	return p.Row != nil && slices.ContainsFunc(p.Row.Addresses, func(g intent.PortAddress) bool { return g.Addr == guest || g.MAC.LinkLocal() == guest })
}

// Row is the rest of an intent.MetadataPort. A member of a network has Addresses alone.
type Row struct {
	Tap       string               `json:"tap"`
	IfIndex   uint32               `json:"ifindex"`
	VLAN      uint16               `json:"vlan,omitempty"`
	Answer    intent.MAC           `json:"answer"`
	Addresses []intent.PortAddress `json:"guests,omitempty"`
}

// Table is what all numbers of a node mean, and who is on the networks that are served in
// namespaces. It is not changed once it is made.
type Table struct {
	ports    []Port
	four     map[Number]behind
	six      map[Number]*Port
	networks []Network
	on       map[string]*members
}

type behind struct {
	port  *Port
	guest netip.Addr
}

// NewTable joins ports and networks. Two with one number, or two networks in one
// namespace, are an error: neither may have it.
func NewTable(ports []Port, networks []Network) (*Table, error) {
	t := &Table{
		ports: slices.Clone(ports), four: map[Number]behind{}, six: map[Number]*Port{},
		networks: slices.Clone(networks), on: map[string]*members{},
	}
	slices.SortFunc(t.ports, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(t.networks, func(a, b Network) int { return strings.Compare(a.Name, b.Name) })
	for i := range t.ports {
		if err := t.addPort(&t.ports[i]); err != nil {
			return nil, err
		}
	}
	namespaces := map[string]string{}
	for i := range t.networks {
		n := &t.networks[i]
		if err := n.check(); err != nil {
			return nil, err
		}
		if t.on[n.Name] != nil {
			return nil, fmt.Errorf("network %q is there twice", n.Name)
		}
		if other, taken := namespaces[n.Namespace]; taken {
			return nil, fmt.Errorf("networks %q and %q have the namespace %s", other, n.Name, n.Namespace)
		}
		namespaces[n.Namespace] = n.Name
		t.on[n.Name] = newMembers(n)
	}
	for i := range t.ports {
		if on := t.on[t.ports[i].Network]; on != nil {
			on.reserve(&t.ports[i])
		}
	}
	return t, nil
}

func (t *Table) addPort(p *Port) error {
	for n := range p.Numbers6 {
		if n == 0 || n > Max {
			return fmt.Errorf("port %s has the number %d, which is none of 1 to %d", p.Name, n, Max)
		}
		if other := t.six[n]; other != nil {
			return fmt.Errorf("ports %s and %s have the IPv6 number %d", other.Name, p.Name, n)
		}
		t.six[n] = p
	}
	for n, guest := range p.Numbers4 {
		if n == 0 || n > Max {
			return fmt.Errorf("port %s has the number %d, which is none of 1 to %d", p.Name, n, Max)
		}
		if other := t.four[n].port; other != nil {
			return fmt.Errorf("ports %s and %s have the IPv4 number %d", other.Name, p.Name, n)
		}
		if !guest.Is4() {
			return fmt.Errorf("port %s has the number %d for %s, which is no IPv4 address", p.Name, n, guest)
		}
		t.four[n] = behind{p, guest}
	}
	return nil
}

// Find tells whose the address of a steered connection is, and which one the guest itself
// has.
func (t *Table) Find(a netip.Addr) (p Port, guest netip.Addr, ok bool) {
	n, guest, ok := Parse(a)
	if !ok || t == nil {
		return Port{}, netip.Addr{}, false
	}
	if guest.IsValid() {
		if p := t.six[n]; p != nil {
			return *p, guest, true
		}
		return Port{}, netip.Addr{}, false
	}
	b, ok := t.four[n]
	if !ok {
		return Port{}, netip.Addr{}, false
	}
	return *b.port, b.guest, true
}

// Ports are all that are steered, by name.
func (t *Table) Ports() []Port {
	if t == nil {
		return nil
	}
	return slices.Clone(t.ports)
}
