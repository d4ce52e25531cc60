package intent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Guest is an address of a VM's port: one of Port_Binding.mac.
type Guest struct {
	MAC MAC `json:"mac"`
	// Addr is invalid, in JSON empty, for a port with a MAC alone: it has IPv6 link-local
	// addresses only.
	Addr netip.Addr `json:"addr"`
}

func (g Guest) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s", g.MAC, g.Addr), " invalid IP")
}

func (g Guest) compare(o Guest) int {
	return cmp.Or(strings.Compare(string(g.MAC[:]), string(o.MAC[:])), g.Addr.Compare(o.Addr))
}

// GuestSet is a sorted set of guests, comparable as a value. It is opaque: make it with
// NewGuestSet, read it with All.
type GuestSet string

const guestLen = 6 + 1 + 16

// NewGuestSet sorts and deduplicates. Addresses must not be IPv4-mapped, nor have a zone.
func NewGuestSet(guests ...Guest) GuestSet {
	guests = slices.Clone(guests)
	slices.SortFunc(guests, Guest.compare)
	b := make([]byte, 0, len(guests)*guestLen)
	for _, g := range slices.Compact(guests) {
		family, a := byte(0), [16]byte{}
		if g.Addr.IsValid() {
			family, a = 6, g.Addr.As16()
		}
		if g.Addr.Is4() {
			family = 4
		}
		b = append(append(append(b, g.MAC[:]...), family), a[:]...)
	}
	return GuestSet(b)
}

// All lists the guests in order.
func (s GuestSet) All() []Guest {
	var out []Guest
	for ; len(s) >= guestLen; s = s[guestLen:] {
		b := []byte(s[:guestLen])
		g := Guest{MAC: MAC(b[:6])}
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

func (s GuestSet) String() string {
	var words []string
	for _, g := range s.All() {
		words = append(words, g.String())
	}
	return strings.Join(words, ", ")
}

// MarshalJSON writes a list of guests.
func (s GuestSet) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("[]"), nil
	}
	return json.Marshal(s.All())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *GuestSet) UnmarshalJSON(b []byte) error {
	var list []Guest
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*s = NewGuestSet(list...)
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
	// Guests are who may ask.
	Guests GuestSet
	// Tap is the zero value for a port that is served by its network's namespace. There a
	// request is told by where it comes from: (Network, Guest.Addr), or for IPv6
	// link-local addresses (Network, Guest.MAC), among all ports of the network, also
	// those with a tap. An address that two of them have is nobody's: 404.
	Tap Tap
	// Answer is the MAC address that the tap's program answers ARP and ND with for the
	// metadata addresses: that of the network's metadata port, so that a guest may move
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
	Neighbours GuestSet
	// Bridge is the integration bridge.
	Bridge string
	// Userspace: its datapath_type is netdev, so that checksums have to be filled in.
	Userspace bool
}
