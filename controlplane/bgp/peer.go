package bgp

import (
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"
)

func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }

// globalConfig is the BGP server's own configuration.
func globalConfig(c Config) *api.Global {
	g := &api.Global{Asn: c.ASN, RouterId: c.RouterID.String(), ListenPort: int32(c.ListenPort)}
	for _, a := range c.ListenAddresses {
		g.ListenAddresses = append(g.ListenAddresses, a.String())
	}
	return g
}

// peerConfig is a neighbour as the BGP server takes it.
func peerConfig(c Config, n Neighbor) *api.Peer {
	keepalive := seconds(n.HoldTime) / 3
	if n.Keepalive > 0 {
		keepalive = seconds(n.Keepalive)
	}
	p := &api.Peer{
		Conf: &api.PeerConf{
			NeighborAddress: n.Address.String(), PeerAsn: n.ASN, LocalAsn: c.ASN,
			Description: n.Description, AuthPassword: n.Password,
		},
		Transport: &api.Transport{PassiveMode: n.Passive, RemotePort: uint32(n.Port)},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry: seconds(n.ConnectRetry), HoldTime: seconds(n.HoldTime), KeepaliveInterval: keepalive,
			IdleHoldTimeAfterReset: seconds(n.ConnectRetry),
		}},
	}
	if n.LocalAddress.IsValid() {
		p.Transport.LocalAddress = n.LocalAddress.String()
	}
	if n.TTLSecurity > 0 {
		// Both ends send 255. TtlMin becomes IP_MINTTL, the lowest that is taken.
		p.TtlSecurity = &api.TtlSecurity{Enabled: true, TtlMin: 256 - uint32(n.TTLSecurity)}
	}
	if n.MultihopTTL > 1 {
		p.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(n.MultihopTTL)}
	}
	if !n.LocalAddress.IsValid() && n.Address.Zone() != "" {
		// The server's own choice has a zone, with which it cannot be a next hop.
		p.Transport.LocalAddress = netip.IPv6Unspecified().String()
	}
	if !n.NoGracefulRestart {
		p.GracefulRestart = &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(seconds(c.RestartTime)), DeferralTime: uint32(seconds(c.DeferralTime)),
			LocalRestarting: c.Restarting, NotificationEnabled: true, LonglivedEnabled: c.LongLivedTime > 0,
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
