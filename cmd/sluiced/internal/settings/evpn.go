package settings

import (
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/exposure"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// EVPN is the translation's part of the configuration.
func EVPN(c *config.Config) evpn.Config {
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

// Exposure is the part of the configuration of what is exposed without EVPN.
func Exposure(c *config.Config) exposure.Config {
	e := EVPN(c)
	return exposure.Config{
		Ports: c.Exposure.Ports == config.SwitchOn, FloatingIPs: c.Exposure.FloatingIPs == config.SwitchOn, Gateways: c.Exposure.Gateways == config.SwitchOn,
		Networks: c.Exposure.Networks, Prefixes: c.Exposure.Prefixes,
		NextHops: e.NextHops, ICMPSource4: e.ICMPSource4, ICMPSource6: e.ICMPSource6, NextHopMAC: e.NextHopMAC,
		Northbound: c.OVN.NB != "", LoadBalancing: c.OVN.NB != "" && c.LoadBalancing.Enabled,
	}
}
