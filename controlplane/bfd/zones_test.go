package bfd

import (
	"net/netip"
	"strings"
	"testing"
)

// A router with one link-local address on two links has a session on each: the loss of one
// path is not that of the other.
func TestOneAddressOnTwoLinks(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	for _, line := range []string{
		"-n MID link add twin type veth peer name twin netns NODE",
		"-n NODE addr add fe80::1/64 dev twin nodad", "-n MID addr add fe80::fe/64 dev twin nodad",
		"-n MID link set twin up", "-n NODE link set twin up",
	} {
		c.ip(strings.NewReplacer("NODE", c.node, "MID", c.mid).Replace(line))
	}
	const timers = "\n  transmit-interval 100\n  receive-interval 100\n  detect-multiplier 10\n"
	peer := " peer " + nodeLink + " local-address " + midLink + " interface "
	near := startBFDD(t, c.mid, peer+"node"+timers, peer+"twin"+timers)
	quick := Settings{MinTx: 100 * ms, MinRx: 100 * ms, Multiplier: 10}
	var peers []Peer
	for _, l := range []string{"eth0", "twin"} {
		peers = append(peers, Peer{Neighbor: netip.MustParseAddr(midLink + "%" + l), Settings: quick})
	}
	s := startChild(t, c.node, peers...)
	eventually(t, "both sessions are up", func() bool { return s.all(PathUp) && near.all("up") })
	c.cut()
	eventually(t, "the path of one is lost", func() bool { return s.report().Sessions[0].Path == PathLost })
	if p := s.report().Sessions[1]; p.Path != PathUp || p.Flaps != 0 {
		t.Errorf("the other one: %+v", p)
	}
}
