package main

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// evpnConfig is the translation's part of the configuration.
func evpnConfig(c *config.Config) evpn.Config {
	out := evpn.Config{
		ASN: c.BGP.ASN, VRFs: map[intent.VNI]evpn.VRFConfig{}, NextHops: c.Fabric.NextHops, AnnounceNAT: c.EVPN.NAT == config.NATAnnounce,
		NextHopMAC: c.Fabric.NextHopMAC, HoldNATUnknown: c.EVPN.NATUnknown == config.NATUnknownHold, MaxVRFs: int(c.EVPN.MaxVRFs),
		Standby: c.EVPN.Standby == config.StandbyOn, DynamicRouting: c.EVPN.DynamicRouting == config.SwitchOn,
		Learn: c.EVPN.LearnedRoutes == config.SwitchOn, LoadBalancing: c.LoadBalancing.Enabled,
	}
	out.Announce, _ = evpn.ParseMode(string(c.EVPN.Announce)) // config has checked it
	out.Path, _ = evpn.ParsePathMode(string(c.Path))
	for _, a := range c.Fabric.ICMPSource {
		if a.Is4() {
			out.ICMPSource4 = a
		} else {
			out.ICMPSource6 = a
		}
	}
	for vni, v := range c.EVPN.VRFs {
		vrf := evpn.VRFConfig{Import: v.Import, Export: v.Export, Quiet: v.Announce == config.SwitchOff}
		vrf.Path, _ = evpn.ParsePathMode(string(v.Path))
		out.VRFs[vni] = vrf
	}
	return out
}

// identity is what makes a node itself in the fabric.
type identity struct {
	systemID  string
	vtep      netip.Addr
	routerMAC intent.MAC
	routerID  netip.Addr
}

// same tells whether the fabric sees the same node: what is announced under the
// one is right under the other.
func (i identity) same(o identity) bool {
	return i.vtep == o.vtep && i.routerMAC == o.routerMAC && i.routerID == o.routerID
}

// bgpConfig is the speaker's part of the configuration. restarting tells the
// neighbours that forwarding went on.
func bgpConfig(c *config.Config, id identity, restarting bool) (bgp.Config, error) {
	out := bgp.Config{
		ASN: c.BGP.ASN, RouterID: id.routerID, SystemID: id.systemID, RouterMAC: id.routerMAC,
		VRFs: importLimits(c.EVPN.VRFs), RestartTime: c.BGP.GracefulRestart.Time.Duration, Restarting: restarting && c.BGP.GracefulRestart.Enabled,
	}
	if id.vtep.Is4() {
		out.VTEP4 = id.vtep
	} else {
		out.VTEP6 = id.vtep
	}
	out.VTEPLinger, out.PeerLinger = c.BGP.VTEPLinger.Duration, c.BGP.PeerLinger.Duration
	if out.PeerLinger == 0 {
		out.PeerLinger = -1
	}
	if c.BGP.LongLived.Enabled {
		out.LongLivedTime = c.BGP.LongLived.Time.Duration
	}
	if c.BGP.Listen != "" {
		ap, err := netip.ParseAddrPort(c.BGP.Listen)
		if err != nil {
			return out, fmt.Errorf("bgp.listen: %w", err)
		}
		out.ListenPort, out.ListenAddresses = int(ap.Port()), []netip.Addr{ap.Addr()}
	}
	for _, n := range c.BGP.Neighbors {
		password, err := n.ReadPassword()
		if err != nil {
			return out, err
		}
		asn := n.ASN
		if asn == 0 && !n.External {
			asn = c.BGP.ASN
		}
		out.Neighbors = append(out.Neighbors, bgp.Neighbor{
			Description: n.Description, Interface: n.Interface, External: n.External, Families: families(n.Families),
			Address: n.Address, ASN: asn, Port: n.Port, LocalAddress: n.LocalAddress, Password: password,
			TTLSecurity: n.GTSM, MultihopTTL: n.MultihopTTL, Passive: n.Passive,
			ConnectRetry: n.ConnectRetry.Duration, HoldTime: n.HoldTime.Duration, Keepalive: n.Keepalive.Duration,
			NoGracefulRestart: !c.BGP.GracefulRestart.Enabled, MaxPrefixes: n.MaxPrefixes, BFD: bfdMode(n.BFD),
		})
	}
	return out, nil
}

func limitsOf(s config.Sizes) ebpf.Limits {
	return ebpf.Limits{
		VRFs: s.VRFs, Gateways: s.Gateways, VTEPs: s.VTEPs, Served: s.Served, Hosts: s.Hosts, Prefixes: s.Prefixes, NextHops: s.NextHops,
		VIPs: s.VIPs, Backends: s.Backends, Flows: s.Flows,
	}
}

// noFlows is the size of the map of flows where there are none: its memory is used at once.
const noFlows = 1024

// ebpfConfig is the data plane's part of the configuration.
func (n *node) ebpfConfig(vxlan int) ebpf.Config {
	c := n.d.cfg
	out := ebpf.Config{
		Dir: c.Dataplane.BPFFS, Bridges: ports{n}, Networks: networkMTU, Devices: n.kernel, Log: n.d.log,
		Node: ebpf.Node{
			RouterMAC: n.id.routerMAC, NextHopMAC: c.Fabric.NextHopMAC, VXLANIndex: uint32(vxlan), UnderlayMTU: uint16(n.mtu),
			ZeroChecksum: n.zeroChecksum(), FlowRate: c.LoadBalancing.NewFlowRate,
		},
		Limits: limitsOf(c.Dataplane.Sizes),
	}
	if !c.LoadBalancing.Enabled {
		out.Limits.Flows = noFlows
	}
	switch c.Fabric.DF {
	case config.DFSet:
		out.Node.DF = ebpf.DFSet
	case config.DFClear:
		out.Node.DF = ebpf.DFClear
	default:
		out.Node.DF = ebpf.DFAuto
	}
	if n.id.vtep.Is4() {
		out.Node.VTEP4 = n.id.vtep
	} else {
		out.Node.VTEP6 = n.id.vtep
	}
	return out
}

// inactivityProbe is the setting as a session takes it, where 0 is the default.
func inactivityProbe(cfg *config.Config) time.Duration {
	if cfg.OVN.InactivityProbe.Duration == 0 {
		return -1
	}
	return cfg.OVN.InactivityProbe.Duration
}

func tlsFiles(t config.TLS) ovsdb.TLSFiles {
	return ovsdb.TLSFiles{Cert: t.Certificate, Key: t.PrivateKey, CA: t.CACert}
}

// northboundPatience is how long after a start the Northbound database is waited for: less
// than the speaker waits with End-of-RIB, after which the neighbours give up what they kept.
const northboundPatience = bgp.DefaultDeferralTime * 2 / 3

// networkMTU is that of a provider bridge's own device, which Open vSwitch keeps at the
// least of the bridge's ports.
func networkMTU(bridge intent.BridgeKey) uint16 {
	mtu, err := link.New(netns.Namespace{}).MTU(string(bridge))
	if err != nil {
		return 0
	}
	return uint16(min(mtu, math.MaxUint16))
}
