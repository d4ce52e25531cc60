package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Config is what Load needs.
type Config struct {
	// Dir is a directory on a bpffs. It is created if its parent is there.
	Dir string
	// Plane is what is in it.
	Plane Plane
	// Node are the constants of this node. Clients needs its rates alone.
	Node Node
	// Limits are the sizes of the maps; fields that are 0 mean the default.
	Limits Limits
	// Bridges tells which device leads into a provider bridge.
	Bridges Bridges
	// Networks tells the largest packet of the network that a provider bridge leads to; 0
	// is not known. It holds for addresses of the default VRF, which are on that network.
	// A tenant's are behind a router, on others. Nil: none is known.
	Networks func(bridge intent.BridgeKey) uint16
	// Devices tells where packets of a VRF on the kernel path go. Nil: no VRF is.
	Devices Devices
	// Hook is how programs are attached; the zero value picks by the kernel.
	Hook Hook
	// Log gets what happens to pins and programs.
	Log *slog.Logger
}

// Hook is a way to attach a program to a device's ingress.
type Hook = pinned.Hook

// The hooks.
const (
	// HookAuto is tcx where the kernel has it, else clsact.
	HookAuto = pinned.HookAuto
	// HookTCX is a tcx link (kernel 6.6 and later).
	HookTCX = pinned.HookTCX
	// HookClsact is a filter of the clsact qdisc.
	HookClsact = pinned.HookClsact
)

// Port is the device that leads into a provider bridge: sluice<N>.
type Port struct {
	IfIndex uint32
	MTU     uint16
}

// Bridges finds the device of a provider bridge.
type Bridges interface {
	Port(bridge intent.BridgeKey) (Port, bool)
}

// Devices tells which device the packets of a VRF on the kernel path are handed to.
type Devices interface {
	// IfIndex may be called with the lock of the tables held.
	IfIndex(vni intent.VNI) (int, bool)
}

// DF is how the don't-fragment bit of the outer IPv4 header is set.
type DF uint8

// The modes. In all of them the size of the inner packet is checked first.
const (
	// DFAuto sets the bit as the inner packet has it; IPv6 always has it. An IPv4
	// packet without DF that does not fit is fragmented outside.
	DFAuto = DF(bpfDfModeDF_AUTO)
	// DFSet always sets it: whatever does not fit is answered with an ICMP error.
	DFSet = DF(bpfDfModeDF_SET)
	// DFClear never sets it: whatever does not fit is fragmented outside.
	DFClear = DF(bpfDfModeDF_CLEAR)
)

// Node are constants of this node that the programs carry in themselves.
// Changing one replaces the programs in place: see Dataplane.SetNode.
type Node struct {
	// RouterMAC is the inner MAC address of this node in the fabric.
	RouterMAC intent.MAC
	// NextHopMAC answers ARP and ND for served next hops; one for the whole cloud.
	NextHopMAC intent.MAC
	// VTEP4 and VTEP6 are the local tunnel endpoints. One of them may be invalid.
	VTEP4, VTEP6 netip.Addr
	// VXLANIndex is the ifindex of sluice-vxlan. 0: there is none, and nothing is sent
	// into the fabric by the programs.
	VXLANIndex uint32
	// UnderlayMTU is the largest outer layer-3 packet in bytes.
	UnderlayMTU uint16
	DF          DF
	// ZeroChecksum leaves the outer UDP checksum out.
	ZeroChecksum bool
	// ICMPRate is how many ICMP errors a second each VRF sends in each
	// direction, and ICMPBurst how many at once. 0: 100 and 50.
	ICMPRate, ICMPBurst uint32
	// SampleRate is how many dropped packets a second are sampled, and
	// SampleBurst how many at once. 0: 50 and 50.
	SampleRate, SampleBurst uint32
	// FlowRate is how many new flows a second of each VIP are recorded. 0: all.
	FlowRate uint32
}

// minUnderlayMTU leaves 576 bytes to an inner IPv4 packet over an IPv6 underlay.
const minUnderlayMTU = 646

func (n Node) check() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(n.RouterMAC.IsZero() || n.RouterMAC[0]&1 != 0, "router MAC %s is not a unicast address", n.RouterMAC)
	bad(n.NextHopMAC.IsZero() || n.NextHopMAC[0]&1 != 0, "next-hop MAC %s is not a unicast address", n.NextHopMAC)
	bad(!n.VTEP4.IsValid() && !n.VTEP6.IsValid(), "no local VTEP address")
	bad(n.VTEP4.IsValid() && (!n.VTEP4.Is4() || n.VTEP4.IsUnspecified()), "VTEP %s is no IPv4 address of a host", n.VTEP4)
	bad(n.VTEP6.IsValid() && (!n.VTEP6.Is6() || n.VTEP6.Is4In6() || n.VTEP6.IsUnspecified()), "VTEP %s is no IPv6 address of a host", n.VTEP6)
	bad(n.UnderlayMTU < minUnderlayMTU, "underlay MTU %d is below %d", n.UnderlayMTU, minUnderlayMTU)
	bad(n.DF > DFClear, "unknown DF mode %d", n.DF)
	return errors.Join(errs...)
}

func (n Node) constants() bpfNodeConstants {
	c := bpfNodeConstants{
		RouterMac: n.RouterMAC, NexthopMac: n.NextHopMAC, Df: uint8(n.DF), UnderlayMtu: n.UnderlayMTU,
		VxlanIfindex: n.VXLANIndex,
	}
	if n.ZeroChecksum {
		c.ZeroCsum = 1
	}
	if n.VTEP4.IsValid() {
		c.Vtep4 = be32(n.VTEP4)
	}
	if n.VTEP6.IsValid() {
		c.Vtep6 = n.VTEP6.As16()
	}
	c.IcmpInterval, c.IcmpBurst = bucket(n.ICMPRate, n.ICMPBurst, 100, 50)
	c.SampleInterval, c.SampleBurst = bucket(n.SampleRate, n.SampleBurst, 50, 50)
	if n.FlowRate > 0 {
		c.FlowInterval, c.FlowBurst = bucket(n.FlowRate, n.FlowRate, 0, 0)
	}
	c.Processors = uint32(ebpf.MustPossibleCPU())
	return c
}

// bucket gives nanoseconds per token and nanoseconds of tokens kept.
func bucket(rate, burst, defaultRate, defaultBurst uint32) (interval, depth uint64) {
	if rate == 0 {
		rate = defaultRate
	}
	if burst == 0 {
		burst = defaultBurst
	}
	interval = uint64(time.Second) / uint64(rate)
	return interval, interval * uint64(burst)
}

// be32 is an IPv4 address as the programs' __be32: its bytes in wire order.
func be32(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

func fromBE32(v uint32) netip.Addr {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

// Limits are the most rows that each map takes.
type Limits struct {
	VRFs     uint32 // and their counters: an index is at most this
	Gateways uint32
	VTEPs    uint32
	Served   uint32
	Hosts    uint32
	Prefixes uint32 // of each address family
	NextHops uint32
	Groups   uint32 // different sets of several next hops
	VIPs     uint32 // and their tables
	Backends uint32
	Flows    uint32 // half of them sessions, half of them rows of flows
}

// DefaultLimits are the sizes that the programs are built with.
func DefaultLimits() Limits {
	return Limits{VRFs: 4096, Gateways: 8192, VTEPs: 65536, Served: 65536, Hosts: 1_000_000,
		Prefixes: 250_000, NextHops: 65536, Groups: 8192, VIPs: 16384, Backends: 65535, Flows: 131072}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ to, from *uint32 }{
		{&l.VRFs, &d.VRFs}, {&l.Gateways, &d.Gateways}, {&l.VTEPs, &d.VTEPs}, {&l.Served, &d.Served},
		{&l.Hosts, &d.Hosts}, {&l.Prefixes, &d.Prefixes}, {&l.NextHops, &d.NextHops}, {&l.Groups, &d.Groups},
		{&l.VIPs, &d.VIPs}, {&l.Backends, &d.Backends}, {&l.Flows, &d.Flows},
	} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	return l
}

// sizes are the max_entries of the maps that the limits decide. Row 0 of an
// array stands for nothing.
func (l Limits) sizes() map[string]uint32 {
	counters := 2 * (l.VRFs + 1)
	return map[string]uint32{
		bpfMapVrfsV2: l.VRFs, bpfMapSpeakersV1: l.VRFs, bpfMapCountersV1: counters, bpfMapBucketsV1: counters,
		bpfMapGatewaysV1: l.Gateways, bpfMapEntriesV1: l.Gateways + 1, bpfMapNamesV1: l.Gateways,
		bpfMapAskedV1: l.Gateways + 1, bpfMapVtepsV1: l.VTEPs, bpfMapServedV1: l.Served, bpfMapKnownV1: l.Served,
		bpfMapHostsV1: l.Hosts, bpfMapRouteFrontV1: frontSize(l), bpfMapPrefixes4V1: l.Prefixes, bpfMapPrefixes6V1: l.Prefixes,
		bpfMapNexthopsV1: l.NextHops + 1, bpfMapPathMtusV1: l.VTEPs, bpfMapGroupsV1: l.Groups + 1,
		bpfMapVipsV2: l.VIPs, bpfMapRatesV1: 2*l.VIPs + 1, bpfMapNeighborsV1: 8 * l.VIPs, bpfMapBackendsV1: l.Backends + 1, bpfMapAnswersV2: l.Backends, bpfMapBackendRoutesV1: l.Backends, bpfMapSessionsV1: (l.Flows + 1) / 2, bpfMapFlowsV4: (l.Flows + 1) / 2,
	}
}
