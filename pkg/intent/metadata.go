package intent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// PortAddress is an address of a VM's port: one of Port_Binding.mac.
type PortAddress struct {
	MAC MAC `json:"mac"`
	// Addr is invalid, in JSON empty, for a port with a MAC alone: it has IPv6 link-local
	// addresses only.
	Addr netip.Addr `json:"addr"`
}

func (a PortAddress) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s", a.MAC, a.Addr), " invalid IP")
}

func (a PortAddress) compare(o PortAddress) int {
	return cmp.Or(strings.Compare(string(a.MAC[:]), string(o.MAC[:])), a.Addr.Compare(o.Addr))
}

// PortAddressSet is a sorted set of addresses, comparable as a value. It is opaque: make it with
// NewPortAddressSet, read it with All.
type PortAddressSet string

const portAddressLen = 6 + 1 + 16

// NewPortAddressSet sorts and deduplicates. Addresses must not be IPv4-mapped, nor have a zone.
func NewPortAddressSet(addresses ...PortAddress) PortAddressSet {
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, PortAddress.compare)
	b := make([]byte, 0, len(addresses)*portAddressLen)
	for _, g := range slices.Compact(addresses) {
		family, a := byte(0), [16]byte{}
		if g.Addr.IsValid() {
			family, a = 6, g.Addr.As16()
		}
		if g.Addr.Is4() {
			family = 4
		}
		b = append(append(append(b, g.MAC[:]...), family), a[:]...)
	}
	return PortAddressSet(b)
}

// All lists the addresses in order.
func (s PortAddressSet) All() []PortAddress {
	var out []PortAddress
	for ; len(s) >= portAddressLen; s = s[portAddressLen:] {
		b := []byte(s[:portAddressLen])
		g := PortAddress{MAC: MAC(b[:6])}
		switch b[6] {
		case 4:
			g.Addr = netip.AddrFrom16([16]byte(b[7:])).Unmap()
		case 6:
			g.Addr = netip.AddrFrom16([16]byte(b[7:]))
		}
		out = append(out, g)
	}
	return out
}

func (s PortAddressSet) String() string {
	var words []string
	for _, g := range s.All() {
		words = append(words, g.String())
	}
	return strings.Join(words, ", ")
}

// MarshalJSON writes a list of PortAddress.
func (s PortAddressSet) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("[]"), nil
	}
	return json.Marshal(s.All())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *PortAddressSet) UnmarshalJSON(b []byte) error {
	var list []PortAddress
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*s = NewPortAddressSet(list...)
	return nil
}

// MetadataPort is a VM's port that is bound to this node, and whose metadata
// requests Sluice answers: from its tap, or where it has none from its network's namespace.
type MetadataPort struct {
	// Port is Port_Binding.logical_port, the key.
	Port string
	// Network is the Datapath_Binding's external_ids:name without "neutron-", or
	// external_ids:name as it is.
	Network string
	// Instance and Project are the Port_Binding's external_ids neutron:device_id and
	// neutron:project_id. An empty Instance is not known yet: requests get 404.
	Instance, Project string
	// Addresses are those from which the port may ask.
	Addresses PortAddressSet
	// Tap is the zero value for a port that is served by its network's namespace. There a
	// request is told by where it comes from: (Network, PortAddress.Addr), or for IPv6
	// link-local addresses (Network, PortAddress.MAC), among all ports of the network, also
	// those with a tap. An address that two of them have is nobody's: 404.
	Tap Tap
	// Answer is the MAC address that the tap's program answers ARP and ND with for the
	// metadata addresses: that of the network's metadata port, so that a VM may move
	// between nodes of either form.
	Answer MAC
}

// PrefixSet is a sorted set of addresses with their prefix lengths, comparable as a value.
// It is opaque: make it with NewPrefixSet, read it with All.
type PrefixSet string

// NewPrefixSet sorts and deduplicates. Addresses keep their bits beyond the length.
func NewPrefixSet(prefixes ...netip.Prefix) PrefixSet {
	prefixes = slices.Clone(prefixes)
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	var words []string
	for _, p := range slices.Compact(prefixes) {
		words = append(words, p.String())
	}
	return PrefixSet(strings.Join(words, " "))
}

// All lists the prefixes in order.
func (s PrefixSet) All() []netip.Prefix {
	var out []netip.Prefix
	for word := range strings.FieldsSeq(string(s)) {
		if p, err := netip.ParsePrefix(word); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// MetadataNetwork is a network whose metadata port (an OVN localport) is a namespace of
// this node, for VMs whose requests no program can steer.
type MetadataNetwork struct {
	// Network is the key, as MetadataPort has it.
	Network string
	// Port is the localport's Port_Binding.logical_port, and MAC its address.
	Port string
	MAC  MAC
	// MTU is external_ids:neutron:mtu of the localport; 0: not known.
	MTU uint16
	// Addresses are the localport's own, of the subnets in which a VM here has an
	// address, and without 169.254.169.254, which every namespace has.
	Addresses PrefixSet
	// IPv6: a VM here has an IPv6 address, so that fe80::a9fe:a9fe is served.
	IPv6 bool
	// Neighbours are what the namespace knows of VMs here without asking: which MAC
	// has which address. They are IPv4 or link-local, and no address is there twice. All
	// others are found by ARP and neighbour discovery.
	Neighbours PortAddressSet
	// Bridge is the integration bridge.
	Bridge string
	// Userspace: its datapath_type is netdev, so that checksums have to be filled in.
	Userspace bool
}
