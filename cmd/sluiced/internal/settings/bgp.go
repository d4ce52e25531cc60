package settings

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// BGP is the speaker's part of the configuration. restarting tells the
// neighbours that forwarding went on.
func BGP(c *config.Config, id Identity, restarting bool) (bgp.Config, error) {
	out := bgp.Config{
		ASN: c.BGP.ASN, RouterID: id.RouterID, SystemID: id.SystemID, RouterMAC: id.RouterMAC,
		VRFs: importLimits(c.EVPN.VRFs), RestartTime: c.BGP.GracefulRestart.Time.Duration, Restarting: restarting && c.BGP.GracefulRestart.Enabled,
	}
	if id.VTEP.Is4() {
		out.VTEP4 = id.VTEP
	} else {
		out.VTEP6 = id.VTEP
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

// importLimits are the import filters and limits of the configuration.
func importLimits(vrfs map[intent.VNI]config.VRF) map[intent.VNI]bgp.VRFImport {
	out := map[intent.VNI]bgp.VRFImport{}
	for vni, v := range vrfs {
		if v.MaxPrefixes == 0 && len(v.ImportFilter) == 0 {
			continue
		}
		limit := bgp.VRFImport{MaxPrefixes: v.MaxPrefixes}
		for _, r := range v.ImportFilter {
			limit.Filter = append(limit.Filter, bgp.PrefixRule{Permit: r.Action == config.FilterPermit, Prefix: r.Prefix, GE: r.GE, LE: r.LE})
		}
		out[vni] = limit
	}
	return out
}

// families are those of a neighbour as the speaker has them.
func families(list []config.Family) (out bgp.Families) {
	for _, f := range list {
		switch f {
		case config.FamilyEVPN:
			out |= bgp.FamilyEVPN
		case config.FamilyIPv4:
			out |= bgp.FamilyIPv4
		case config.FamilyIPv6:
			out |= bgp.FamilyIPv6
		}
	}
	return out
}

func bfdMode(b config.BFD) bgp.BFD {
	switch {
	case !b.Enabled:
		return bgp.BFDOff
	case b.Strict:
		return bgp.BFDStrict
	}
	return bgp.BFDFollow
}

// BFDPeers are the neighbours with BFD, and how each is watched.
func BFDPeers(c *config.Config) []bfd.Peer {
	var out []bfd.Peer
	for _, n := range c.BGP.Neighbors {
		if !n.BFD.Enabled {
			continue
		}
		out = append(out, bfd.Peer{
			Neighbor: n.Address, Local: n.LocalAddress, Multihop: n.BFD.Multihop, MinTTL: n.BFD.MinTTL,
			Settings: bfd.Settings{MinTx: n.BFD.MinTx.Duration, MinRx: n.BFD.MinRx.Duration, Multiplier: n.BFD.Multiplier, Passive: n.BFD.Passive},
		})
	}
	return out
}
