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
	// RouterID is the BGP identifier, in the form of an IPv4 address, unique in
	// the fabric; it is also in every route distinguisher. Empty: the VTEP
	// address if it is IPv4, else derived from the system ID.
	RouterID netip.Addr `yaml:"routerID"`
	// Listen is ADDRESS:PORT for connections from neighbours. [::] is every
	// address, of IPv4 too; :PORT is short for [::]:PORT. Empty: none, the daemon
	// only connects.
	Listen string `yaml:"listen"`
	// Neighbors are the peers: route reflectors or leaves. At least one unless
	// roles is none.
	Neighbors []Neighbor `yaml:"neighbors"`
	// GracefulRestart keeps the routes of a neighbour, and of this node at its
	// neighbours, over a restart (RFC 4724).
	GracefulRestart GracefulRestart `yaml:"gracefulRestart"`
	// LongLived keeps them longer, as less preferred ones (RFC 9494).
	LongLived LongLived `yaml:"longLived"`
	// PeerLinger is how long the routes of a node that vanished as a whole are
	// kept while nothing replaces them: route reflectors such as FRR 8.4 withdraw
	// the routes of a node whose daemon restarts. 0: not at all.
	PeerLinger configfile.Duration `yaml:"peerLinger"`
	// VTEPLinger is how long a tunnel endpoint stays known after its last route, so
	// that its packets that are on their way are accepted.
	VTEPLinger configfile.Duration `yaml:"vtepLinger"`
	// ConnectRetry is the wait between attempts to connect to a neighbour.
	ConnectRetry configfile.Duration `yaml:"connectRetry"`
}

// Neighbor is a BGP peer.
type Neighbor struct {
	// Address is the peer's, IPv4 or IPv6; a link-local one has a zone
	// (fe80::1%eth0), which tells peers with one address on several interfaces apart.
	// Required, unless interface is given.
	Address netip.Addr `yaml:"address"`
	// Interface is the link whose router is the peer, such as eth1: its IPv6
	// link-local address is learned from its router advertisements (BGP unnumbered),
	// and this node advertises itself there, as default router to no one.
	Interface string `yaml:"interface"`
	// ASN is the peer's AS number. 0: the node's own, iBGP.
	ASN uint32 `yaml:"asn"`
	// External takes a peer of any AS but the node's own, in the place of asn.
	External bool `yaml:"external"`
	// Families are the address families of the session: evpn, ipv4 and ipv6, the
	// latter two for the underlay. IPv4 prefixes over a session with IPv6 addresses
	// have IPv6 next hops (RFC 8950), which the peer has to have switched on. Empty:
	// evpn; with underlay.announce or underlay.install, for a peer with interface
	// evpn, ipv4 and ipv6, and for another eBGP peer without multihopTTL evpn and the
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
	// GTSM accepts the peer's packets only if they have come over at most this
	// number of hops (RFC 5082). 0: off. Not together with multihopTTL.
	GTSM uint8 `yaml:"gtsm"`
	// HoldTime ends a session without any message for so long. A peer that asks for 0
	// has neither a hold time nor keepalives (RFC 4271 section 4.2).
	HoldTime configfile.Duration `yaml:"holdTime"`
	// Keepalive is the interval of keepalives. 0: a third of holdTime.
	Keepalive configfile.Duration `yaml:"keepalive"`
	// ConnectRetry is the wait between attempts to connect. 0: bgp.connectRetry.
	ConnectRetry configfile.Duration `yaml:"connectRetry"`
	// MaxPrefixes is the most routes that are accepted from the peer, of EVPN those of
	// Type 5; the session is closed above. 0: no limit.
	MaxPrefixes uint32 `yaml:"maxPrefixes"`
	// Passive waits for the peer to connect. Needs bgp.listen.
	Passive bool `yaml:"passive"`
	// BFD watches the path to the peer.
	BFD BFD `yaml:"bfd"`
}

// BFD is bidirectional forwarding detection with a peer (RFC 5880): a path that is
// lost ends the BGP session at once.
type BFD struct {
	// Enabled is whether it is done. The UDP ports 3784, or 4784 with multihop, are
	// then sluiced's: no other BFD daemon can run in the same network namespace.
	Enabled bool `yaml:"enabled"`
	// MinTx is the interval to send with, 10ms to 1m. The slower one of it and what
	// the peer can receive is used; one second while the path is not up.
	MinTx configfile.Duration `yaml:"minTx"`
	// MinRx is the shortest interval to receive, 10ms to 1m.
	MinRx configfile.Duration `yaml:"minRx"`
	// Multiplier is after how many intervals without a packet from this node the
	// peer counts the path as lost; this node goes by the peer's. At least 1.
	Multiplier uint8 `yaml:"multiplier"`
	// Multihop is RFC 5883, for a peer that is not on a connected link. The peer has
	// to have the same; FRR does it for eBGP peers with ebgp-multihop, and for iBGP
	// peers that are not on a connected link. localAddress should be set, too.
	Multihop bool `yaml:"multihop"`
	// MinTTL is the lowest TTL (hop limit) of packets that are accepted from a
	// multihop peer, which sends them with 255: 255 less the routers between. 0: any.
	// Without multihop it is always 255 (RFC 5082).
	MinTTL uint8 `yaml:"minTTL"`
	// Passive sends nothing before the peer does.
	Passive bool `yaml:"passive"`
	// Strict lets no BGP session start while BFD is not up, unless the peer says that
	// it has switched BFD off. FRR begins with BFD when BGP is up: there the peer needs
	// lines of its own below "bfd".
	Strict bool `yaml:"strict"`
}

// GracefulRestart is RFC 4724.
type GracefulRestart struct {
	// Enabled is whether it is negotiated.
	Enabled bool `yaml:"enabled"`
	// Time is how long routes are kept without a session, at most 4095s.
	Time configfile.Duration `yaml:"time"`
}

// LongLived is RFC 9494.
type LongLived struct {
	// Enabled is whether it is negotiated. Needs gracefulRestart.
	Enabled bool `yaml:"enabled"`
	// Time is how long stale routes are kept after the restart time, at most
	// 16777215s.
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
