package settings

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// Limits are the sizes of the maps.
func Limits(s config.Sizes) ebpf.Limits {
	return ebpf.Limits{
		VRFs: s.VRFs, Gateways: s.Gateways, VTEPs: s.VTEPs, Served: s.Served, Hosts: s.Hosts, Prefixes: s.Prefixes, NextHops: s.NextHops,
		VIPs: s.VIPs, Backends: s.Backends, Flows: s.SessionEntries,
	}
}

// PerVRF tells whether the whole node is on the kernel path.
func PerVRF(c *config.Config) bool { return c.Path == config.PathKernel }

// ZeroChecksum leaves the outer UDP checksum out.
func ZeroChecksum(c *config.Config, vtep netip.Addr) bool {
	mode := c.Fabric.UDPChecksum
	return mode == config.ChecksumOff || mode == config.ChecksumAuto && vtep.Is4()
}

// BridgeMTU is that of the veth pairs. A packet that is too large for the fabric
// has to come through the pair to overlay_in, which answers or fragments it: a
// veth drops in silence what is above its own MTU.
func BridgeMTU(underlay int) int { return max(underlay, leastBridgeMTU) }

const leastBridgeMTU = 9216
