package config

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

const (
	maxGracefulTime  = 4095 * time.Second     // 12 bits, RFC 4724 section 3
	maxLongLivedTime = 16777215 * time.Second // 24 bits, RFC 9494 section 3.1
	maxHoldTime      = 65535 * time.Second    // 16 bits, RFC 4271 section 4.2
	minBFDInterval   = 10 * time.Millisecond  // what a process among others can keep to
	maxBFDInterval   = time.Minute
)

func (check rules) validateBGP(b *BGP, required bool) {
	if b.ASN == 0 && required {
		check.FailAt("bgp.asn", "missing; give the node's AS number, such as 64512")
	}
	if len(b.Neighbors) == 0 && required {
		check.FailAt("bgp.neighbors", `missing; give at least one, such as [{address: 192.0.2.1}]`)
	}
	if b.RouterID.IsValid() && (!b.RouterID.Is4() || b.RouterID.IsUnspecified()) {
		check.FailAt("bgp.routerID", "%s is not a router ID; write it like 192.0.2.1", b.RouterID)
	}
	if b.Listen != "" {
		check.bgpListen(b.Listen)
	}
	check.bgpTime("bgp.gracefulRestart.time", b.GracefulRestart.Time, time.Second, maxGracefulTime)
	check.bgpTime("bgp.peerLinger", b.PeerLinger, 0, time.Hour)
	check.bgpTime("bgp.vtepLinger", b.VTEPLinger, time.Second, time.Hour)
	check.bgpTime("bgp.connectRetry", b.ConnectRetry, time.Second, maxHoldTime)
	check.bgpTime("bgp.longLived.time", b.LongLived.Time, time.Second, maxLongLivedTime)
	if b.LongLived.Enabled && !b.GracefulRestart.Enabled {
		check.FailAt("bgp.longLived.enabled", "needs bgp.gracefulRestart.enabled: true (RFC 9494 section 4.1)")
	}
	first := map[netip.Addr]int{}
	for i := range b.Neighbors {
		n := &b.Neighbors[i]
		key := fmt.Sprintf("bgp.neighbors[%d]", i)
		switch j, dup := first[n.Address]; {
		case n.Interface != "":
			check.sameInterface(b, i)
		case !dup || !n.Address.IsValid():
			first[n.Address] = i
			check.samePassword(b, i, key)
		default:
			check.FailAt(key+".address", "%s is already neighbors[%d]; remove one", n.Address, j)
		}
		check.validateNeighbor(b, n, key)
	}
}

// samePassword wants one password of neighbours with one link-local address on several links:
// the kernel keeps the keys of TCP-MD5 by address alone. Files are read later.
func (check rules) samePassword(b *BGP, i int, key string) {
	n := &b.Neighbors[i]
	for j := range b.Neighbors[:i] {
		other := &b.Neighbors[j]
		same := n.Address.IsValid() && other.Address.WithZone("") == n.Address.WithZone("")
		if same && n.PasswordFile == "" && other.PasswordFile == "" && n.Password.Reveal() != other.Password.Reveal() {
			check.FailAt(key+".password", "%s has the address of neighbors[%d] on another interface, and another password; give both one password", n.Address, j)
			return
		}
	}
}

// bgpListen wants what netip.ParseAddrPort takes; complete has filled in the
// address.
func (check rules) bgpListen(s string) {
	at, err := netip.ParseAddrPort(s)
	switch {
	case err != nil || at.Addr().IsMulticast():
		check.FailAt("bgp.listen", "%q is not an address to listen on; write 192.0.2.1:179, [2001:db8::1]:179 or :179", s)
	case at.Port() == 0:
		check.FailAt("bgp.listen", "0 is no port to listen on; the port of BGP is 179")
	case at.Addr().Zone() != "":
		check.FailAt("bgp.listen", "%s cannot be listened on alone; use [::]:%d", at.Addr(), at.Port())
	}
}

func (check rules) validateNeighbor(b *BGP, n *Neighbor, key string) {
	if n.Interface != "" {
		check.neighborInterface(n, key)
	} else {
		check.neighborAddresses(n, key)
	}
	check.neighborFamilies(n, key)
	if n.Port == 0 {
		check.FailAt(key+".port", "0 is no TCP port; the port of BGP is 179")
	}
	check.bgpTime(key+".holdTime", n.HoldTime, 3*time.Second, maxHoldTime)
	if n.Keepalive.Duration%time.Second != 0 && n.Keepalive.Duration != n.HoldTime.Duration/3 ||
		n.Keepalive.Duration > 0 && n.Keepalive.Duration >= n.HoldTime.Duration {
		check.FailAt(key+".keepalive", "%s does not fit; use whole seconds below holdTime (%s), or 0s for a third of it", n.Keepalive, n.HoldTime)
	}
	check.bgpTime(key+".connectRetry", n.ConnectRetry, time.Second, maxHoldTime)
	if n.PasswordFile != "" {
		check.Absolute(key+".passwordFile", n.PasswordFile)
		if !n.Password.IsZero() {
			check.FailAt(key+".passwordFile", "password is given too; keep one of them")
		}
	}
	if l := len(n.Password.Reveal()); l > maxPassword {
		check.FailAt(key+".password", "%d bytes; at most %d are possible", l, maxPassword)
	}
	if n.Password.Reveal() == configfile.Redacted {
		check.FailAt(key+".password", "this is what a printed configuration shows instead of the password; write the password itself")
	}
	internal := n.ASN == b.ASN && !n.External
	switch {
	case n.MultihopTTL != 0 && n.GTSM != 0:
		check.FailAt(key+".gtsm", "multihopTTL is given too; keep one of them")
	case n.MultihopTTL != 0 && internal:
		check.FailAt(key+".multihopTTL", "is for eBGP; this neighbor has the node's own ASN %d, where any distance is allowed", n.ASN)
	}
	if n.Passive && b.Listen == "" {
		check.FailAt(key+".passive", `needs bgp.listen, such as "[::]:179"`)
	}
	check.validateBFD(n, key+".bfd")
}

func (check rules) validateBFD(n *Neighbor, key string) {
	b := n.BFD
	for _, v := range []struct {
		name string
		configfile.Duration
	}{{"minTx", b.MinTx}, {"minRx", b.MinRx}} {
		if v.Duration.Duration < minBFDInterval || v.Duration.Duration > maxBFDInterval || v.Duration.Duration%time.Microsecond != 0 {
			check.FailAt(key+"."+v.name, "%s does not fit; use 10ms to 1m", v.Duration)
		}
	}
	if b.Multiplier == 0 {
		check.FailAt(key+".multiplier", "0 would declare every path lost; use 1 to 255")
	}
	if b.Multihop && n.Address.IsLinkLocalUnicast() {
		check.FailAt(key+".multihop", "%s is on a link, and never several hops away; remove the key", n.Address)
	}
	if b.MinTTL != 0 && !b.Multihop {
		check.FailAt(key+".minTTL", "is for multihop; without it only packets with TTL 255 are accepted")
	}
}

func (check rules) neighborAddresses(n *Neighbor, key string) {
	a := n.Address
	switch {
	case !a.IsValid():
		check.FailAt(key+".address", "missing; give the peer's IP address")
		return
	case a.IsUnspecified() || a.IsMulticast():
		check.FailAt(key+".address", "%s is not a peer's address; use a unicast address", a)
	case a.Is6() && a.IsLinkLocalUnicast() != (a.Zone() != ""):
		check.FailAt(key+".address", "%s: a link-local address needs its interface as zone, such as fe80::1%%eth0, and no other address has one", a)
	}
	if l := n.LocalAddress; l.IsValid() && l.Is4() != a.Is4() {
		check.FailAt(key+".localAddress", "%s is not of the family of %s", l, a)
	}
}

func (check rules) bgpTime(key string, v configfile.Duration, low, high time.Duration) {
	if v.Duration < low || v.Duration > high || v.Duration%time.Second != 0 {
		check.FailAt(key, "%s does not fit; use whole seconds from %s to %s", v, low, high)
	}
}
