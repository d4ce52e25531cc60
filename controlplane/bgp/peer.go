package bgp

import (
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
)

func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }

// globalConfig is the BGP server's own configuration: package wire listens for it.
func globalConfig(c Config) *api.Global {
	return &api.Global{Asn: c.ASN, RouterId: c.RouterID.String(), ListenPort: -1}
}

// wireNeighbor is a neighbour as package wire takes it.
func wireNeighbor(c Config, n Neighbor) wire.Neighbor {
	out := wire.Neighbor{
		Address: n.Address, Port: n.Port, LocalAddress: n.LocalAddress, Password: n.Password, Passive: n.Passive,
		ConnectRetry: n.ConnectRetry, HoldTime: n.HoldTime,
	}
	if out.Port == 0 {
		out.Port = 179
	}
	switch {
	case n.TTLSecurity > 0:
		// Both ends send 255 (RFC 5082 section 3).
		out.TTL, out.MinTTL = 255, uint8(256-int(n.TTLSecurity))
	case n.ASN != 0 && n.ASN != c.ASN:
		out.TTL = max(n.MultihopTTL, 1)
	}
	return out
}

// peerConfig is a neighbour as the BGP server takes it: it speaks over the loopback
// connection to the handle.
func peerConfig(c Config, n Neighbor, handle netip.AddrPort) *api.Peer {
	keepalive := seconds(n.HoldTime) / 3
	if n.Keepalive > 0 {
		keepalive = seconds(n.Keepalive)
	}
	p := &api.Peer{
		Conf: &api.PeerConf{
			NeighborAddress: handle.Addr().String(), PeerAsn: n.ASN, LocalAsn: c.ASN, Description: n.Description,
		},
		Transport: &api.Transport{RemotePort: uint32(handle.Port()), LocalAddress: wire.Self.String()},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry: 1, HoldTime: seconds(n.HoldTime), KeepaliveInterval: keepalive,
			IdleHoldTimeAfterReset: seconds(n.ConnectRetry),
		}},
	}
	if !n.NoGracefulRestart {
		p.GracefulRestart = &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(seconds(c.RestartTime)), NotificationEnabled: true, LonglivedEnabled: c.LongLivedTime > 0,
		}
	}
	for _, f := range n.Families.List() {
		p.AfiSafis = append(p.AfiSafis, familyConfig(c, n, f))
	}
	return p
}

func familyConfig(c Config, n Neighbor, f Families) *api.AfiSafi {
	family := &api.AfiSafi{Config: &api.AfiSafiConfig{Family: f.wire(), Enabled: true}}
	if n.MaxPrefixes > 0 {
		family.PrefixLimits = &api.PrefixLimit{Family: f.wire(), MaxPrefixes: n.MaxPrefixes}
	}
	if n.NoGracefulRestart {
		return family
	}
	family.MpGracefulRestart = &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}}
	// Routes of the underlay lead to a neighbour on a link: kept for long after it
	// is gone, they would lead nowhere.
	if c.LongLivedTime > 0 && f == FamilyEVPN {
		family.LongLivedGracefulRestart = &api.LongLivedGracefulRestart{Config: &api.LongLivedGracefulRestartConfig{
			Enabled: true, RestartTime: uint32(seconds(c.LongLivedTime)),
		}}
	}
	return family
}

// noTransit is the export policy: routes of our own go out, others' never. Without
// it a route from one eBGP neighbour would be passed on to the next with this
// node as next hop.
func noTransit() (*api.Policy, *api.PolicyAssignment) {
	policy := &api.Policy{Name: "own-routes", Statements: []*api.Statement{{
		Name:       "own-routes",
		Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		Actions:    &api.Actions{RouteAction: api.RouteAction_ACCEPT},
	}}}
	return policy, &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_EXPORT,
		Policies: []*api.Policy{{Name: policy.Name}}, DefaultAction: api.RouteAction_REJECT,
	}
}
