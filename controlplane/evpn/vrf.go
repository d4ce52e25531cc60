package evpn

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// member is a gateway port's part in a VRF.
type member struct {
	router ovn.UUID
	GatewayResult
}

// vrfBuild joins the members of one VRF. Members come in the order of their
// right of way: those that are here before those that may come, routers as they came to the
// VNI, a router's gateway ports by name.
type vrfBuild struct {
	vni        intent.VNI
	nextHopMAC intent.MAC
	annotated  PathMode
	choice     Choice
	// quiet: nothing is announced.
	quiet     bool
	tables    wanted.Set
	errors    []ObjectError
	accepted  []claim
	answering []answering
	// hosts says which port an address belongs to.
	hosts map[netip.Addr]string
	// vips says which load balancer has a VIP.
	vips     map[intent.VIPKey]string
	balanced []loadbalancer.Balanced
}

type claim struct {
	prefix netip.Prefix
	router ovn.UUID
	object string
	// advertised is Subnet.Advertised.
	advertised bool
}

func buildVRF(vni intent.VNI, index uint16, cfg Config, facts PathFacts, members []member) *vrfBuild {
	b := &vrfBuild{vni: vni, nextHopMAC: cfg.NextHopMAC, quiet: cfg.VRFs[vni].Quiet, tables: wanted.NewSet(), hosts: map[netip.Addr]string{}, vips: map[intent.VIPKey]string{}}
	first := members[0]
	wanted.Put(b.tables, intent.Policies, intent.VRFPolicy{
		VNI: vni, Index: index,
		Export: first.Policy.Export, Import: first.Policy.Import, AutoImport: first.Policy.AutoImport,
	})
	var joined []member
	for _, m := range members {
		if m.Policy != first.Policy {
			b.fail(m, kindGateway, m.Gateway.LogicalPort, reason.VRFConflict,
				fmt.Errorf("VNI %d belongs to %s, which names another AS or other route targets", vni, first.Gateway.LogicalPort))
			continue
		}
		joined = append(joined, m)
	}
	b.choose(cfg, facts, joined)
	wanted.Put(b.tables, intent.VRFs, intent.VRF{VNI: vni, Index: index, Path: b.choice.Path})
	if b.choice.Path == intent.PathKernel {
		wanted.Put(b.tables, intent.KernelVRFs, intent.KernelVRF{VNI: vni, Index: index})
	}
	for _, m := range joined {
		b.gateway(m)
	}
	for _, m := range joined {
		for _, s := range m.Subnets {
			b.subnet(m, s)
		}
	}
	for _, m := range joined {
		b.own(m)
	}
	for _, m := range joined {
		b.balance(m)
	}
	return b
}

// fail refuses an object. One behind a gateway port that is elsewhere is refused
// without a word: nothing asks for it here.
func (b *vrfBuild) fail(m member, kind, name, reason string, err error) {
	if m.Standby {
		return
	}
	b.errors = append(b.errors, ObjectError{Kind: kind, Name: name, Reason: reason, Err: err})
}

func (b *vrfBuild) gateway(m member) {
	key := m.Gateway.Key
	wanted.Put(b.tables, intent.Gateways, m.Gateway)
	b.kernel(m)
	if m.Learner != (intent.Learner{}) {
		wanted.Put(b.tables, intent.Learners, m.Learner)
	}
	if m.Standby {
		wanted.Put(b.tables, intent.Standby, m.Place)
	}
	b.steer(m, intent.SteerToOVN, netip.Prefix{})
	for _, s := range m.Served {
		wanted.Put(b.tables, intent.ServedNextHops, s)
		if s.Answer && m.Provider != "" {
			b.answering = append(b.answering, answering{segment: key.Segment(), provider: m.Provider, prefix: s.Key.Prefix})
		}
		switch {
		case !s.Answer:
		case s.Key.Prefix.Addr().Is4():
			b.steer(m, intent.SteerARP, s.Key.Prefix)
		default:
			b.steer(m, intent.SteerND, s.Key.Prefix)
		}
	}
}

func (b *vrfBuild) steer(m member, kind intent.SteeringKind, p netip.Prefix) {
	s := intent.Steering{Key: intent.SteeringKey{Gateway: m.Gateway.Key, Kind: kind, Prefix: p}, Localnet: m.Localnet}
	if kind == intent.SteerSource {
		s.NextHopMAC = b.nextHopMAC
	}
	if b.choice.Path == intent.PathKernel && (kind == intent.SteerSource || kind == intent.SteerToOVN) {
		s.Path, s.VNI = intent.PathKernel, b.vni
	}
	wanted.Put(b.tables, intent.SteeringFlows, s)
}

// steerAnswers has what a backend sends from its port come to this node, and nothing else of it.
func (b *vrfBuild) steerAnswers(m member, backend intent.Backend, protocol intent.Protocol) {
	key := intent.SteeringKey{Gateway: m.Gateway.Key, Kind: intent.SteerAnswer, Prefix: host(backend.Addr), Protocol: protocol, Port: backend.Port}
	wanted.Put(b.tables, intent.SteeringFlows, intent.Steering{Key: key, Localnet: m.Localnet, NextHopMAC: b.nextHopMAC})
}

// local adds a destination that leads into OVN and is accepted as a source, or the
// way to where it does.
func (b *vrfBuild) local(m member, p netip.Prefix, announce bool) {
	key := intent.NewRouteKey(b.vni, p)
	if m.Standby {
		wanted.Put(b.tables, intent.Relays, m.relay(key))
		return
	}
	wanted.Put(b.tables, intent.Routes, intent.Route{Key: key, Kind: intent.RouteLocal, Gateway: m.Gateway.Key})
	if announce && !b.quiet {
		wanted.Put(b.tables, intent.Announcements, intent.Announcement{Key: key, Gateway: m.Gateway.Key})
	}
}

// block adds a destination that is not to be reached. Where its subnet is relayed,
// the node that has the gateway port says so.
func (b *vrfBuild) block(m member, p netip.Prefix) {
	if m.Standby {
		return
	}
	key := intent.NewRouteKey(b.vni, p)
	wanted.Put(b.tables, intent.Routes, intent.Route{Key: key, Kind: intent.RouteBlock})
}

// nests tells whether one may be in the other: routes of one router are such as the
// router itself tells apart.
func (c claim) nests(other claim) bool {
	return c.advertised && other.advertised && c.router == other.router && c.prefix != other.prefix
}

// overlapping finds an accepted subnet that overlaps a prefix, and may not.
func (b *vrfBuild) overlapping(p netip.Prefix, may func(claim) bool) (claim, bool) {
	for _, c := range b.accepted {
		if c.prefix.Overlaps(p) && !may(c) {
			return c, true
		}
	}
	return claim{}, false
}

func (b *vrfBuild) subnet(m member, s Subnet) {
	mine := claim{s.Prefix, m.router, s.Object, s.Advertised}
	if c, ok := b.overlapping(s.Prefix, func(c claim) bool { return c.nests(mine) }); ok {
		b.fail(m, kindInterface, s.Object, reason.Overlap, fmt.Errorf("%s overlaps %s of %s in VNI %d", s.Prefix, c.prefix, c.object, b.vni))
		return
	}
	b.accepted = append(b.accepted, mine)
	b.local(m, s.Prefix, s.Announce)
	b.steer(m, intent.SteerSource, s.Prefix)
	for _, p := range s.Blocks {
		b.block(m, p)
	}
	for _, h := range s.Hosts {
		if winner, ok := b.hosts[h.Addr]; ok {
			b.fail(m, kindHost, h.Object, reason.DuplicateAddress, fmt.Errorf("%s in VNI %d belongs to %s", h.Addr, b.vni, winner))
			continue
		}
		b.hosts[h.Addr] = h.Object
		if h.Block {
			b.block(m, host(h.Addr))
		} else {
			b.local(m, host(h.Addr), true)
		}
	}
}

// own exposes the gateway port's own addresses. They come after all subnets, so
// that an address inside somebody's subnet never takes a host's place.
func (b *vrfBuild) own(m member) {
	for _, a := range m.Own {
		name := m.Gateway.LogicalPort
		if c, ok := b.overlapping(host(a), func(claim) bool { return false }); ok {
			b.fail(m, kindGateway, name, reason.Overlap, fmt.Errorf("the port's own address %s is in %s of %s in VNI %d", a, c.prefix, c.object, b.vni))
			continue
		}
		if winner, ok := b.hosts[a]; ok {
			b.fail(m, kindGateway, name, reason.DuplicateAddress, fmt.Errorf("%s in VNI %d belongs to %s", a, b.vni, winner))
			continue
		}
		b.hosts[a] = name
		b.local(m, host(a), true)
		b.steer(m, intent.SteerSource, host(a))
	}
}
