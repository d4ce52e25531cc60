//go:build guest

package evpn_test

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The tests run in a virtual machine of test/vm: Open vSwitch has the kernel's
// datapath, and red has two provider edges with FRR and a network that is in both
// clouds, with the same address of a VM.
var plainParams = lab.EVPNParams{
	KernelDatapath: true,
	Anycast:        true,
	Peers:          []lab.Peer{edge("p1", 41), edge("p2", 42)},
}

// edge is a provider edge with a network of its own and one that both have.
func edge(name string, net int) lab.Peer {
	addrs := []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.10/24", net)), netip.MustParsePrefix(fmt.Sprintf("fd00:%d::10/64", net)),
		shared4, shared6,
	}
	return lab.Peer{Name: name, FRR: true, VRFs: []lab.PeerVRF{{VNI: vniRed, Addrs: addrs}}}
}

// What both edges have.
var (
	shared4 = netip.MustParsePrefix("10.50.0.10/24")
	shared6 = netip.MustParsePrefix("fd00:50::10/64")
)

// answerIn is how many seconds an answer may take.
const answerIn = "30"

// makePrograms takes the programs under test that the guest was given.
func makePrograms(dir string) error { return labtest.LinkPrograms(dir, "sluiced", "sluicectl") }
