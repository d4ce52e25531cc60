package intent

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Protocol is an IP protocol number (IANA).
type Protocol uint8

// The protocols that are balanced.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return "protocol " + strconv.Itoa(int(p))
}

// MarshalText writes the name.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (p *Protocol) UnmarshalText(text []byte) error {
	for _, known := range []Protocol{TCP, UDP, SCTP} {
		if known.String() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("protocol %q is none of tcp, udp and sctp", text)
}

// VIPKey is what clients connect to in a VRF.
type VIPKey struct {
	VNI      VNI
	Protocol Protocol
	// Addr is not IPv4-mapped.
	Addr netip.Addr
	// Port is 0 for all ports that have no VIP of their own.
	Port uint16
}

func (k VIPKey) String() string {
	return fmt.Sprintf("%s %s/%s", k.VNI, FormatEndpoint(k.Addr, k.Port), k.Protocol)
}

// Compare orders by VRF, address, port and protocol.
func (k VIPKey) Compare(o VIPKey) int {
	return cmp.Or(cmp.Compare(k.VNI, o.VNI), k.Addr.Compare(o.Addr), cmp.Compare(k.Port, o.Port), cmp.Compare(k.Protocol, o.Protocol))
}

// FormatEndpoint writes an address and its port as OVN does (ovn-nb(5), Load_Balancer.vips):
// IPv6 in brackets, and the address alone for port 0.
func FormatEndpoint(a netip.Addr, port uint16) string {
	if port == 0 {
		return a.String()
	}
	return netip.AddrPortFrom(a, port).String()
}

// FlowIdle is how long a flow is known without a packet at most: one of TCP that is open (RFC
// 5382, section 5). Other nodes, OVN and what depends on flows go by it, too.
const FlowIdle = 7440 * time.Second

// VIP is a load balancer's address.
type VIP struct {
	Key VIPKey
	// OVN: new flows are OVN's to balance, and all else but Key and Flush is zero. Those that
	// eBPF knows go on as they are; with Flush they end, as all of their backends are gone.
	OVN bool
	// Backends may be none.
	Backends BackendSet
	// Slots is the size of the Maglev table, one of those of package maglev.
	Slots uint32
	// Affinity is for how many seconds without a new flow a client keeps its backend; 0: not
	// at all.
	Affinity uint16
	// ByAddress: the backend of a flow depends on its addresses alone.
	ByAddress bool
	// Flush: flows to a backend that is none of Backends any more end, as do all with the VIP.
	Flush bool
}

// ByOVN is the VIP while OVN balances it.
func (v VIP) ByOVN() VIP {
	return VIP{Key: v.Key, OVN: true, Flush: v.Flush && v.Backends.Len() == 0}
}

// Backend is a backend of a VIP.
type Backend struct {
	Addr netip.Addr `json:"address"`
	// Port is 0 if the VIP has none: the packet's port counts.
	Port uint16 `json:"port"`
	// Weight is the share of new sessions, 0 to 256: 0 is none.
	Weight uint16 `json:"weight"`
}

func (b Backend) String() string {
	text := FormatEndpoint(b.Addr, b.Port)
	if b.Weight != 1 {
		text += fmt.Sprintf("=%d", b.Weight)
	}
	return text
}

// TableKey names the backend in Maglev tables, on all nodes alike.
func (b Backend) TableKey(p Protocol) string {
	return FormatEndpoint(b.Addr, b.Port) + "/" + p.String()
}

func (b Backend) compare(o Backend) int {
	return cmp.Or(b.Addr.Compare(o.Addr), cmp.Compare(b.Port, o.Port), cmp.Compare(b.Weight, o.Weight))
}

// backendLen: the family, the address in 16 bytes, port and weight.
const backendLen = 1 + 16 + 2 + 2

// BackendSet is a sorted set of backends, comparable as a value. It is opaque: make it
// with NewBackendSet, read it with All.
type BackendSet string

// NewBackendSet sorts. Of two with one address and port the one with less weight stays.
func NewBackendSet(backends ...Backend) BackendSet {
	backends = slices.Clone(backends)
	slices.SortFunc(backends, Backend.compare)
	backends = slices.CompactFunc(backends, func(a, b Backend) bool { return a.Addr == b.Addr && a.Port == b.Port })
	out := make([]byte, 0, len(backends)*backendLen)
	for _, b := range backends {
		family := byte(6)
		if b.Addr.Is4() {
			family = 4
		}
		a := b.Addr.As16()
		out = append(append(out, family), a[:]...)
		out = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(out, b.Port), b.Weight)
	}
	return BackendSet(out)
}

// Len is the number of backends.
func (s BackendSet) Len() int { return len(s) / backendLen }

// All lists the backends in order.
func (s BackendSet) All() []Backend {
	out := make([]Backend, 0, s.Len())
	for ; len(s) >= backendLen; s = s[backendLen:] {
		b := []byte(s[:backendLen])
		a := netip.AddrFrom16([16]byte(b[1:17]))
		if b[0] == 4 {
			a = a.Unmap()
		}
		out = append(out, Backend{Addr: a, Port: binary.BigEndian.Uint16(b[17:]), Weight: binary.BigEndian.Uint16(b[19:])})
	}
	return out
}

func (s BackendSet) String() string {
	words := make([]string, 0, s.Len())
	for _, b := range s.All() {
		words = append(words, b.String())
	}
	return strings.Join(words, ", ")
}

// MarshalJSON writes a list of backends.
func (s BackendSet) MarshalJSON() ([]byte, error) { return json.Marshal(s.All()) }
