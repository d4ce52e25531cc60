package bgp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Defaults of Config and Neighbor; a zero field means its default.
const (
	DefaultConnectRetry     = 5 * time.Second
	DefaultHoldTime         = 90 * time.Second
	DefaultRestartTime      = 120 * time.Second
	DefaultDeferralTime     = 30 * time.Second
	DefaultVTEPLinger       = 30 * time.Second
	DefaultPeerLinger       = 30 * time.Second
	DefaultPrefixLimitRetry = 60 * time.Second
)

// NoListen is the ListenPort of a speaker that only connects out.
const NoListen = -1

// Config is what a Speaker needs to know of the node and its neighbours.
type Config struct {
	ASN uint32
	// RouterID is an IPv4 address. Unset: VTEP4, else derived from SystemID.
	RouterID netip.Addr
	// SystemID is the chassis name (Open_vSwitch.external_ids:system-id).
	SystemID string
	// VTEP4 and VTEP6 are the node's tunnel addresses, at least one of them.
	// Announcements carry VTEP4 as next hop when it is set, else VTEP6.
	VTEP4, VTEP6 netip.Addr
	// RouterMAC is the inner destination MAC of packets to this node.
	RouterMAC intent.MAC
	// ListenPort is the TCP port for incoming sessions. 0 and NoListen: none.
	ListenPort int
	// ListenAddresses are where ListenPort is opened. Empty, or with :: among them:
	// all addresses of both families.
	ListenAddresses []netip.Addr
	Neighbors       []Neighbor
	// VRFs limits what enters VRFs; one without an entry takes all that carries its
	// route targets.
	VRFs map[intent.VNI]VRFImport

	// RestartTime is how long neighbours keep our routes after the session is
	// lost, and how long imports may stay incomplete after a start. At most
	// 4095 s (12 bits, RFC 4724 section 3).
	RestartTime time.Duration
	// DeferralTime is the longest wait for Ready with the End-of-RIB of sessions that have
	// plain unicast, when Restarting is set.
	DeferralTime time.Duration
	// Restarting tells the neighbours that forwarding was kept over the restart
	// (RFC 4724, the R and F bits): each one until it has our End-of-RIB, or for RestartTime.
	// End-of-RIB then follows after Ready or UnicastReady: not before our routes.
	Restarting bool
	// LongLivedTime turns on long-lived graceful restart (RFC 9494).
	LongLivedTime time.Duration
	// VTEPLinger is how long a tunnel endpoint stays known after its last route.
	VTEPLinger time.Duration
	// PeerLinger is how long the routes of a node are kept whose last one was
	// withdrawn, as doc.go says under "Lost peers". Negative: not at all.
	PeerLinger time.Duration
	// PrefixLimitRetry is when a session that its neighbour's MaxPrefixes ended
	// is tried again.
	PrefixLimitRetry time.Duration
}

// Neighbor is one BGP session.
type Neighbor struct {
	Address netip.Addr
	// Interface, in the place of Address, is the link whose router is the neighbour:
	// its link-local address is learned from its advertisements (package ra).
	Interface string
	ASN       uint32
	// External takes a neighbour of any AS but the node's own; ASN is 0 then.
	External bool
	// Families are those of the session. None: FamilyEVPN.
	Families Families
	// Description is for people.
	Description string
	// Port is the neighbour's TCP port. 0: 179.
	Port uint16
	// LocalAddress is the source address of the session. Unset: the kernel's choice.
	LocalAddress netip.Addr
	// Password turns on TCP-MD5 (RFC 2385).
	Password string
	// TTLSecurity is GTSM (RFC 5082): how many hops away the neighbour may be, 1
	// for a directly connected one. Packets that came further are dropped. 0: off.
	TTLSecurity uint8
	// MultihopTTL allows an eBGP neighbour that many hops away. 0: one hop.
	MultihopTTL uint8
	// Passive waits for the neighbour to connect; it needs a ListenPort.
	Passive                bool
	ConnectRetry, HoldTime time.Duration
	// Keepalive is the interval of keepalives. 0: a third of HoldTime, as it is in
	// any case when the neighbour's hold time is the shorter one.
	Keepalive time.Duration
	// BFD is what PathChanged means for the session.
	BFD BFD
	// NoGracefulRestart leaves RFC 4724 out of this session.
	NoGracefulRestart bool
	// MaxPrefixes ends the session when the neighbour sends more. 0: no limit.
	MaxPrefixes uint32
}

// RouterMAC derives a node's stable router MAC from its chassis name: a locally
// administered unicast address (IEEE 802 U/L bit set, I/G bit clear).
func RouterMAC(systemID string) intent.MAC {
	sum := sha256.Sum256([]byte("sluice router mac\x00" + systemID))
	mac := intent.MAC(sum[:6])
	mac[0] = mac[0]&^0x01 | 0x02
	return mac
}

// RouterID derives the BGP identifier: id itself, else the IPv4 VTEP, else a
// value from the chassis name, in the form of a unicast address: neighbours that
// are older than RFC 6286 refuse any other.
func RouterID(id, vtep4 netip.Addr, systemID string) netip.Addr {
	if id.IsValid() {
		return id
	}
	if vtep4.IsValid() {
		return vtep4
	}
	text := []byte("sluice router id\x00" + systemID)
	for {
		sum := sha256.Sum256(text)
		if a := netip.AddrFrom4([4]byte(sum[:4])); sum[0] > 0 && sum[0] < 224 && !a.IsLoopback() {
			return a
		}
		text = sum[:]
	}
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.RestartTime, DefaultRestartTime)
	set(&c.DeferralTime, DefaultDeferralTime)
	set(&c.VTEPLinger, DefaultVTEPLinger)
	set(&c.PeerLinger, DefaultPeerLinger)
	set(&c.PrefixLimitRetry, DefaultPrefixLimitRetry)
	if c.ListenPort == 0 {
		c.ListenPort = NoListen
	}
	if slices.ContainsFunc(c.ListenAddresses, func(a netip.Addr) bool { return a == netip.IPv6Unspecified() }) {
		c.ListenAddresses = nil
	}
	c.RouterID = RouterID(c.RouterID, c.VTEP4, c.SystemID)
	if c.RouterMAC.IsZero() && c.SystemID != "" {
		c.RouterMAC = RouterMAC(c.SystemID)
	}
	neighbors := make([]Neighbor, len(c.Neighbors))
	for i, n := range c.Neighbors {
		n.Address = n.Address.Unmap()
		if n.Families == 0 {
			n.Families = FamilyEVPN
		}
		set(&n.ConnectRetry, DefaultConnectRetry)
		set(&n.HoldTime, DefaultHoldTime)
		neighbors[i] = n
	}
	c.Neighbors = neighbors
	return c
}

// vtep is the next hop of announcements.
func (c Config) vtep() netip.Addr {
	if c.VTEP4.IsValid() {
		return c.VTEP4
	}
	return c.VTEP6
}

// Validate names everything that is wrong with the configuration.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ASN == 0 {
		bad("the AS number is not set")
	}
	if !c.RouterID.Is4() || c.RouterID.IsUnspecified() {
		bad("router id %s: want an IPv4 address", c.RouterID)
	}
	if c.VTEP4.IsValid() && !c.VTEP4.Is4() || c.VTEP6.IsValid() && (!c.VTEP6.Is6() || c.VTEP6.Is4In6()) {
		bad("the VTEP addresses %s and %s have to be one IPv4 and one IPv6 address", c.VTEP4, c.VTEP6)
	}
	if !c.VTEP4.IsValid() && !c.VTEP6.IsValid() {
		bad("no VTEP address is set")
	}
	if c.RouterMAC.IsZero() || c.RouterMAC[0]&1 != 0 {
		bad("router MAC %s: want a unicast address", c.RouterMAC)
	}
	if c.RestartTime < 0 || c.RestartTime > 4095*time.Second {
		bad("restart time %s: want at most 4095s", c.RestartTime)
	}
	if c.ListenPort > 65535 || c.ListenPort < NoListen {
		bad("listen port %d: want 1..65535, or %d for none", c.ListenPort, NoListen)
	}
	seen, links, passwords := map[netip.Addr]bool{}, map[string]bool{}, map[netip.Addr]string{}
	for _, n := range c.Neighbors {
		if err := n.validate(c); err != nil {
			errs = append(errs, fmt.Errorf("neighbor %s: %w", n.Name(), err))
		}
		if n.Interface != "" {
			if links[n.Interface] {
				bad("neighbor %s is there twice", n.Interface)
			}
			links[n.Interface] = true
			continue
		}
		if seen[n.Address] {
			bad("neighbor %s is there twice", n.Address)
		}
		seen[n.Address] = true
		// The kernel keeps one key of TCP-MD5 for an address, whatever its interface.
		a := n.Address.WithZone("")
		if other, there := passwords[a]; there && other != n.Password {
			bad("neighbor %s has the address of a neighbour on another interface, and another password", n.Address)
		}
		passwords[a] = n.Password
	}
	return errors.Join(errs...)
}

// anyLinkLocal stands for the address of a router that is yet to be found on a link.
func anyLinkLocal(link string) netip.Addr { return netip.MustParseAddr("fe80::1").WithZone(link) }

func (n Neighbor) validate(c Config) error {
	if n.Interface != "" {
		switch {
		case n.Address.IsValid() || n.LocalAddress.IsValid():
			return errors.New("a neighbour of a link has no configured addresses")
		case n.MultihopTTL > 1:
			return errors.New("a neighbour of a link is not many hops away")
		case n.BFD != BFDOff:
			return errors.New("BFD needs the neighbour's address")
		}
		n.Address = anyLinkLocal(n.Interface)
	}
	switch {
	case n.Families.Has(FamilyIPv6) && n.Address.Is4():
		return errors.New("IPv6 prefixes need a session over IPv6")
	case n.External && n.ASN != 0:
		return errors.New("an external neighbour has no configured AS number")
	case !n.Address.IsValid() || n.Address.IsUnspecified() || n.Address.IsMulticast():
		return errors.New("want the neighbour's unicast address")
	case n.Address.IsLinkLocalUnicast() && n.Address.Is6() && n.Address.Zone() == "":
		return errors.New("a link-local address needs its interface, as in fe80::1%eth0")
	case n.ASN == 0 && !n.External:
		return errors.New("the AS number is not set")
	case n.LocalAddress.IsValid() && n.LocalAddress.Is4() != n.Address.Is4():
		return fmt.Errorf("the local address %s is of the other family", n.LocalAddress)
	case n.TTLSecurity > 0 && n.MultihopTTL > 1:
		return errors.New("TTL security and multihop exclude each other")
	case n.MultihopTTL > 1 && n.ASN == c.ASN:
		return errors.New("multihop is for eBGP; iBGP sessions may always be many hops long")
	case n.Passive && c.ListenPort == NoListen:
		return errors.New("a passive neighbour needs a listen port")
	case n.HoldTime < 3*time.Second || n.HoldTime > 65535*time.Second:
		return fmt.Errorf("hold time %s: want 3s..65535s", n.HoldTime)
	case n.Keepalive < 0 || n.Keepalive >= n.HoldTime:
		return fmt.Errorf("keepalive %s: want less than the hold time %s", n.Keepalive, n.HoldTime)
	case n.ConnectRetry < time.Second:
		return fmt.Errorf("connect retry %s: want at least 1s", n.ConnectRetry)
	case len(n.Password) > 80:
		return errors.New("the password is longer than the 80 bytes of TCP-MD5")
	}
	return nil
}
