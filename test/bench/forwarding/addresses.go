package forwarding

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

const (
	vni        = intent.VNI(1001)
	bridge     = intent.BridgeKey("br-ex")
	vxlanPort  = 4789
	innerMTU   = 1500
	overhead   = 50 // outer IPv4, UDP, VXLAN and the inner Ethernet header
	underlayIP = innerMTU + overhead
)

var (
	routerMAC   = intent.MAC{2, 0, 0, 0, 0, 1} // the node's, in the fabric
	nextHopMAC  = intent.MAC{2, 0, 0, 0, 0, 2} // the node's, towards OVN
	farMAC      = intent.MAC{2, 0, 0, 0, 0, 9} // the far VTEP's router MAC
	gatewayMAC  = intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 1}
	nodeLinkMAC = intent.MAC{2, 0, 0, 0, 1, 1}
	farLinkMAC  = intent.MAC{2, 0, 0, 0, 1, 2}

	nodeVTEP = netip.MustParseAddr("192.0.2.1")
	farVTEP  = netip.MustParseAddr("192.0.2.2")
)

// family is the inner addresses of one IP version.
type family struct {
	number    int
	near, far netip.Addr // behind the gateway port, and behind the far VTEP
	hop, vtep netip.Addr // what the kernel takes for next hops, by permanent neighbours
	others    func(i int) netip.Addr
}

var families = []family{
	{
		number: 4, near: netip.MustParseAddr("10.10.0.5"), far: netip.MustParseAddr("10.20.0.9"),
		hop: netip.MustParseAddr("169.254.1.1"), vtep: netip.MustParseAddr("169.254.1.2"),
		others: func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 30, byte(i >> 8), byte(i)}) },
	},
	{
		number: 6, near: netip.MustParseAddr("fd00:10::5"), far: netip.MustParseAddr("fd00:20::9"),
		hop: netip.MustParseAddr("fe80::1:1"), vtep: netip.MustParseAddr("fe80::1:2"),
		others: func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x30, 14: byte(i >> 8), 15: byte(i)})
		},
	},
}

// otherHosts are routes beside those of the packets: half lead into OVN, half to
// the far VTEP.
const otherHosts = 1000
