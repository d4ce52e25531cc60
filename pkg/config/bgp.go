package config

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// BGP is the local speaker and its neighbours.
type BGP struct {
	// ASN is the node's own AS number. Required unless roles is none.
	ASN uint32 `yaml:"asn"`
	// RouterID is the BGP identifier, written as an IPv4 address. It is unique in the fabric, and
	// part of every route distinguisher. Empty: the VTEP address if it is IPv4, else derived from
	// the system ID.
	RouterID netip.Addr `yaml:"routerID"`
	// Listen is ADDRESS:PORT for connections from neighbours. [::] is every
	// address, of IPv4 too; :PORT is short for [::]:PORT. Empty: none, the daemon
	// only connects.
	Listen string `yaml:"listen"`
	// Neighbors are the peers: route reflectors or leaves. At least one unless
	// roles is none.
	Neighbors []Neighbor `yaml:"neighbors"`
	// GracefulRestart preserves the routes of a neighbour, and the routes of this node at its
	// neighbours, over a restart (RFC 4724).
	GracefulRestart GracefulRestart `yaml:"gracefulRestart"`
	// LongLived preserves these routes for longer, as less preferred ones (RFC 9494).
	LongLived LongLived `yaml:"longLived"`
	// PeerLinger is the linger time of the routes of a node that withdraws all of them at once,
	// unless other routes replace them: route reflectors such as FRR 8.4 withdraw the routes of a
	// node whose daemon restarts. 0: no linger time.
	PeerLinger configfile.Duration `yaml:"peerLinger"`
	// VTEPLinger is the linger time of a VTEP after its last route, in which its packets are still
	// accepted.
	VTEPLinger configfile.Duration `yaml:"vtepLinger"`
	// ConnectRetry is the wait between attempts to connect to a neighbour.
	ConnectRetry configfile.Duration `yaml:"connectRetry"`
}

// Neighbor is a BGP peer.
type Neighbor struct {
	// Address is the peer's IPv4 or IPv6 address. A link-local one has a zone (fe80::1%eth0), since
	// peers on several interfaces may have the same address. Required, unless interface is set.
	Address netip.Addr `yaml:"address"`
	// Interface is the link whose router is the peer, such as eth1 (BGP unnumbered). Sluice learns
	// its IPv6 link-local address from its router advertisements, and sends router advertisements
	// itself, which make the node nobody's default router.
	Interface string `yaml:"interface"`
	// ASN is the peer's AS number. 0: the node's own, iBGP.
	ASN uint32 `yaml:"asn"`
	// External accepts a peer of any AS but the node's own. It stands in place of asn.
	External bool `yaml:"external"`
	// Families are the address families of the session: evpn, and ipv4 and ipv6 for the underlay
	// and exposure. In a session with IPv6 addresses, IPv4 prefixes have IPv6 next hops, which the
	// peer has to enable (RFC 8950). Empty: evpn; with underlay or exposure in use, a peer with
	// interface has evpn, ipv4 and ipv6, and another eBGP peer without multihopTTL has evpn and the
	// family of its address.
	Families []Family `yaml:"families"`
	// Description is for people; "sluicectl bgp neighbors" shows it.
	Description string `yaml:"description"`
	// Password is the key of TCP-MD5 (RFC 2385), at most 80 bytes.
	Password configfile.Secret `yaml:"password"`
	// PasswordFile is a file whose first line is the password.
	PasswordFile string `yaml:"passwordFile"`
	// Port is the peer's TCP port.
	Port uint16 `yaml:"port"`
	// LocalAddress is the source address of the session. Empty: the kernel's
	// choice.
	LocalAddress netip.Addr `yaml:"localAddress"`
	// MultihopTTL is the TTL towards an eBGP peer that is not on a connected
	// link. 0: the peer is connected.
	MultihopTTL uint8 `yaml:"multihopTTL"`
	// GTSM is the largest number of hops over which packets of the peer are accepted (RFC 5082). 0:
	// no check. It excludes multihopTTL.
	GTSM uint8 `yaml:"gtsm"`
	// HoldTime is the time without a message after which a session ends. A peer that asks for 0 has
	// neither a hold time nor keepalives (RFC 4271 section 4.2).
	HoldTime configfile.Duration `yaml:"holdTime"`
	// Keepalive is the interval of keepalives. 0: a third of holdTime.
	Keepalive configfile.Duration `yaml:"keepalive"`
	// ConnectRetry is the wait between attempts to connect. 0: bgp.connectRetry.
	ConnectRetry configfile.Duration `yaml:"connectRetry"`
	// MaxPrefixes is the largest number of routes that are accepted from the peer; of EVPN, Type 5
	// counts. One more closes the session. 0: no limit.
	MaxPrefixes uint32 `yaml:"maxPrefixes"`
	// Passive waits for the peer to connect. Needs bgp.listen.
	Passive bool `yaml:"passive"`
	// BFD watches the path to the peer.
	BFD BFD `yaml:"bfd"`
}

// BFD is bidirectional forwarding detection with a peer (RFC 5880): the loss of the path ends the
// BGP session at once.
type BFD struct {
	// Enabled is whether BFD runs. sluiced then uses UDP port 3784, or 4784 with multihop: no other
	// BFD daemon can run in the same network namespace.
	Enabled bool `yaml:"enabled"`
	// MinTx is the interval between packets to the peer, 10ms to 1m. A longer interval that the
	// peer requires replaces it. While the path is not up, the interval is one second.
	MinTx configfile.Duration `yaml:"minTx"`
	// MinRx is the shortest interval at which the peer may send, 10ms to 1m.
	MinRx configfile.Duration `yaml:"minRx"`
	// Multiplier is the number of intervals without a packet from this node after which the peer
	// declares the path lost. This node uses the peer's. At least 1.
	Multiplier uint8 `yaml:"multiplier"`
	// Multihop is RFC 5883, for a peer that is not on a connected link. The peer needs it, too: FRR
	// uses it for eBGP peers with ebgp-multihop, and for iBGP peers that are not on a connected
	// link. Set localAddress as well.
	Multihop bool `yaml:"multihop"`
	// MinTTL is the lowest TTL (hop limit) that is accepted from a multihop peer: 255, which the
	// peer sends, less the number of routers between. 0: any. Without multihop it is always 255
	// (RFC 5082).
	MinTTL uint8 `yaml:"minTTL"`
	// Passive sends nothing before the peer does.
	Passive bool `yaml:"passive"`
	// Strict starts no BGP session before BFD is up, unless the peer says that it has switched BFD
	// off. FRR starts BFD when BGP is up: there, the peer needs lines of its own below "bfd".
	Strict bool `yaml:"strict"`
}

// GracefulRestart is RFC 4724.
type GracefulRestart struct {
	// Enabled is whether graceful restart is negotiated.
	Enabled bool `yaml:"enabled"`
	// Time is how long stale routes stay without a session, at most 4095s.
	Time configfile.Duration `yaml:"time"`
}

// LongLived is RFC 9494.
type LongLived struct {
	// Enabled is whether long-lived graceful restart is negotiated. It needs gracefulRestart.
	Enabled bool `yaml:"enabled"`
	// Time is how long stale routes stay after the restart time, at most 16777215s.
	Time configfile.Duration `yaml:"time"`
}

// SetDefaults is called for every neighbour before its own keys are read.
func (n *Neighbor) SetDefaults() {
	n.Port = 179
	n.HoldTime = configfile.Seconds(90)
	n.MaxPrefixes = 1_000_000
	n.BFD = BFD{MinTx: configfile.Duration{Duration: 300 * time.Millisecond}, MinRx: configfile.Duration{Duration: 300 * time.Millisecond}, Multiplier: 3}
}

// ReadPassword is the password, from the file if one is named.
func (n *Neighbor) ReadPassword() (string, error) {
	if n.PasswordFile == "" {
		return n.Password.Reveal(), nil
	}
	b, err := os.ReadFile(n.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password of neighbor %s: %w", n.Address, err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || len(line) > maxPassword {
		return "", fmt.Errorf("password of neighbor %s: the first line of %s has %d bytes; 1 to %d are allowed", n.Address, n.PasswordFile, len(line), maxPassword)
	}
	return line, nil
}
