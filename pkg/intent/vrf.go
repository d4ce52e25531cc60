package intent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// VNI is a VXLAN network identifier (RFC 7348), 1..16777215. It is also the
// name of a VRF on a node: one VRF has one VNI. DefaultVRF is one more.
type VNI uint32

// MaxVNI is the largest VXLAN network identifier: 24 bits.
const MaxVNI VNI = 1<<24 - 1

// DefaultVRF stands for the routing table of the underlay, where addresses are
// exposed without EVPN. No packet can carry it as a VNI: it needs 25 bits. In all
// tables its rows are as those of tenants, and its announcements plain unicast.
const DefaultVRF = MaxVNI + 1

// ValidVRF tells whether v names a VRF: a tenant's or the default one.
func (v VNI) ValidVRF() bool { return v != 0 && v <= DefaultVRF }

// switches are above all VNIs: see Switch.
const switches VNI = 1 << 25

// Switch is the number of a logical switch where VIPs belong to one and not to a VRF: for
// its VMs. key is Datapath_Binding.tunnel_key, 1..16777215.
func Switch(key uint32) VNI { return switches | VNI(key) }

// IsSwitch tells whether v is the number of a switch.
func (v VNI) IsSwitch() bool { return v > switches && v < 2*switches }

// ValidScope tells whether VIPs may belong to v.
func (v VNI) ValidScope() bool { return v.ValidVRF() || v.IsSwitch() }

func (v VNI) String() string {
	switch {
	case v == DefaultVRF:
		return "default"
	case v.IsSwitch():
		return fmt.Sprintf("switch %d", uint32(v-switches))
	}
	return strconv.FormatUint(uint64(v), 10)
}

// VRF is one tenant's routing table on this node. Its key is its VNI.
type VRF struct {
	VNI VNI
	// Index is small, unique on the node and stable across restarts: the number
	// in the route distinguisher (router-id:index) and the VRF's slot in the
	// counter map. 1..65535.
	Index uint16
	// Path is what carries the VRF's packets. On the kernel path fabric_in hands
	// the VNI to the VRF's devices undecided.
	Path Path
}

// Path is what carries a VRF's packets on this node.
type Path uint8

// The paths. Both make the same announcements and pass the same traffic.
const (
	// PathEBPF is fabric_in and overlay_in: tables Gateways, Served and Routes.
	PathEBPF Path = iota
	// PathKernel is devices, routes and neighbours of the kernel: tables
	// KernelVRFs, KernelGateways and KernelRoutes. ARP and ND of served next hops
	// are answered by overlay_in here too, so Gateways and Served have rows.
	PathKernel
)

func (p Path) String() string {
	switch p {
	case PathEBPF:
		return "ebpf"
	case PathKernel:
		return "kernel"
	}
	return fmt.Sprintf("path(%d)", uint8(p))
}

// MarshalText names the path.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name.
func (p *Path) UnmarshalText(b []byte) error {
	switch string(b) {
	case "ebpf":
		*p = PathEBPF
	case "kernel":
		*p = PathKernel
	default:
		return fmt.Errorf("path %q: want ebpf or kernel", b)
	}
	return nil
}

// MAC is an Ethernet address in wire order.
type MAC [6]byte

// ParseMAC reads the colon form, upper or lower case.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("%q is not an Ethernet address", s)
	}
	return MAC(hw), nil
}

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero tells whether the address is unset.
func (m MAC) IsZero() bool { return m == MAC{} }

// LinkLocal is the link-local address of IPv6 that a device with the MAC address gives
// itself: the modified EUI-64 form (RFC 4291 appendix A).
func (m MAC) LinkLocal() netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

// MarshalText writes the colon form, so that MACs read well as JSON.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the colon form.
func (m *MAC) UnmarshalText(b []byte) (err error) { *m, err = ParseMAC(string(b)); return err }

// RouteTarget is a route target extended community in its 8-byte wire form
// (RFC 4360 section 4, RFC 5668 for four-octet ASes).
type RouteTarget [8]byte

// NewRouteTarget builds ASN:number. A four-octet ASN leaves 16 bits for number.
func NewRouteTarget(asn, number uint32) (RouteTarget, error) {
	if asn <= 0xffff {
		return RouteTarget{0x00, 0x02, byte(asn >> 8), byte(asn),
			byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)}, nil
	}
	if number > 0xffff {
		return RouteTarget{}, fmt.Errorf("route target %d:%d: an AS number above 65535 leaves 16 bits for the number", asn, number)
	}
	return RouteTarget{0x02, 0x02, byte(asn >> 24), byte(asn >> 16), byte(asn >> 8), byte(asn),
		byte(number >> 8), byte(number)}, nil
}

// AutoRouteTarget is the automatic route target of a VNI, (AS & 0xFFFF):VNI
// (RFC 8365 section 5.1.2.1, as FRR derives it).
func AutoRouteTarget(asn uint32, vni VNI) RouteTarget {
	rt, _ := NewRouteTarget(asn&0xffff, uint32(vni))
	return rt
}

// ParseRouteTarget reads ASN:number or IPv4:number.
func ParseRouteTarget(s string) (RouteTarget, error) {
	admin, num, ok := strings.Cut(s, ":")
	if !ok {
		return RouteTarget{}, fmt.Errorf("route target %q: want ASN:NUMBER or IPV4:NUMBER", s)
	}
	if ip := net.ParseIP(admin).To4(); ip != nil {
		n, err := strconv.ParseUint(num, 10, 16)
		if err != nil {
			return RouteTarget{}, fmt.Errorf("route target %q: the number after an IPv4 address is 0..65535", s)
		}
		return RouteTarget{0x01, 0x02, ip[0], ip[1], ip[2], ip[3], byte(n >> 8), byte(n)}, nil
	}
	a, err := strconv.ParseUint(admin, 10, 32)
	if err != nil {
		return RouteTarget{}, fmt.Errorf("route target %q: want ASN:NUMBER or IPV4:NUMBER", s)
	}
	n, err := strconv.ParseUint(num, 10, 32)
	if err != nil {
		return RouteTarget{}, fmt.Errorf("route target %q: the number is 0..4294967295", s)
	}
	return NewRouteTarget(uint32(a), uint32(n))
}

func (t RouteTarget) String() string {
	switch t[0] &^ 0x40 {
	case 0x01:
		return fmt.Sprintf("%d.%d.%d.%d:%d", t[2], t[3], t[4], t[5], uint32(t[6])<<8|uint32(t[7]))
	case 0x02:
		return fmt.Sprintf("%d:%d", uint32(t[2])<<24|uint32(t[3])<<16|uint32(t[4])<<8|uint32(t[5]), uint32(t[6])<<8|uint32(t[7]))
	}
	return fmt.Sprintf("%d:%d", uint32(t[2])<<8|uint32(t[3]), uint32(t[4])<<24|uint32(t[5])<<16|uint32(t[6])<<8|uint32(t[7]))
}

// MarshalText writes the readable form.
func (t RouteTarget) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads ASN:number or IPv4:number.
func (t *RouteTarget) UnmarshalText(b []byte) (err error) {
	*t, err = ParseRouteTarget(string(b))
	return err
}

// MatchesAuto tells whether the target is the automatic one of vni from any AS,
// which is what an automatic import accepts.
func (t RouteTarget) MatchesAuto(vni VNI) bool {
	return t[0] == 0x00 && t[1] == 0x02 && AutoRouteTarget(uint32(t[2])<<8|uint32(t[3]), vni) == t
}

// RouteTargets is a sorted set of route targets, comparable as a value: the
// concatenation of their 8-byte forms.
type RouteTargets string

// NewRouteTargets sorts and deduplicates.
func NewRouteTargets(rts ...RouteTarget) RouteTargets {
	rts = slices.Clone(rts)
	slices.SortFunc(rts, func(a, b RouteTarget) int { return cmp.Compare(string(a[:]), string(b[:])) })
	var b strings.Builder
	for _, rt := range slices.Compact(rts) {
		b.Write(rt[:])
	}
	return RouteTargets(b.String())
}

// All lists the members in order.
func (s RouteTargets) All() []RouteTarget {
	out := make([]RouteTarget, 0, len(s)/8)
	for ; len(s) >= 8; s = s[8:] {
		out = append(out, RouteTarget([]byte(s[:8])))
	}
	return out
}

func (s RouteTargets) String() string {
	var words []string
	for _, rt := range s.All() {
		words = append(words, rt.String())
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes a list of strings.
func (s RouteTargets) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Fields(s.String())) }

// VRFPolicy is what BGP needs to know of a VRF: the route targets it exports
// and imports. Its key is the VNI.
type VRFPolicy struct {
	VNI   VNI
	Index uint16
	// Export are attached to every announcement of the VRF.
	Export RouteTargets
	// Import select the routes that enter the VRF: an exact match. When
	// AutoImport is set a route target of this VNI from any AS matches too.
	Import     RouteTargets
	AutoImport bool
}
