package evpn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// KeyVNI is the key of external_ids that names a VNI.
const KeyVNI = keyVNI

// Elsewhere tells which of the gateway ports that name a query's VNI are on which
// chassis, those of routers with a network of one of its ends. It is for a query
// with neither end in OVN behind this node.
func Elsewhere(q status.Query, gateways []ovn.Gateway) status.Step {
	s := status.Step{Layer: status.LayerOVN, Object: fmt.Sprintf("gateway port of VNI %d", q.VRF)}
	chassis, others := map[string][]string{}, map[string][]string{}
	for _, g := range gateways {
		into := others
		if hasNetwork(g, q.Src) || hasNetwork(g, q.Dst) {
			into = chassis
		}
		into[g.Chassis] = append(into[g.Chassis], g.Port)
	}
	switch {
	case len(gateways) == 0:
		s.Detail = fmt.Sprintf("no router in OVN has a port that names VNI %d", q.VRF)
		s.Hint = fmt.Sprintf("set external_ids:%s on the ports of the router", keyVNI)
		return s
	case len(chassis) == 0:
		s.Detail = fmt.Sprintf("no router of VNI %d has a network with either address; those that there are: %s", q.VRF, boundTo(others))
		s.Hint = "check the addresses and the VNI"
		return s
	}
	s.Detail = boundTo(chassis)
	var ask []string
	for _, name := range slices.Sorted(maps.Keys(chassis)) {
		if name != "" {
			ask = append(ask, name)
		}
	}
	s.Hint = "bind the gateway port: it needs a chassis (lrp-set-gateway-chassis) whose ovn-controller runs"
	if len(ask) > 0 {
		s.Hint = "ask on chassis " + strings.Join(ask, " or ")
	}
	return s
}

// Exposed is a subnet that is exposed behind a gateway port of this node.
type Exposed struct {
	VNI    intent.VNI
	Router ovn.UUID
	// Object is the switch-side port of the router interface.
	Object string
	Prefix netip.Prefix
}

// Exposed lists the subnets of routers that have no gateway port elsewhere: no other node of the
// cloud is to announce them.
func (t *Translator) Exposed() []Exposed {
	var out []Exposed
	for id, r := range t.results {
		if r.Elsewhere {
			continue
		}
		for _, g := range r.Gateways {
			if g.Standby {
				continue
			}
			for _, s := range g.Subnets {
				out = append(out, Exposed{g.Gateway.VNI, id, s.Object, s.Prefix})
			}
		}
	}
	return out
}

// elsewhere tells whether a gateway port that names a VNI is on another node.
func (t *translation) elsewhere() bool {
	for _, p := range t.rows.PortsOn(t.out.Router) {
		if p.Chassis == "" || p.Chassis == t.chassis {
			continue
		}
		for _, g := range t.rows.GatewayPorts(t.out.Router, p.Chassis) {
			if nameGateway(t.rows, t.cfg, g).present {
				return true
			}
		}
	}
	return false
}

// OverlapsElsewhere tells of the exposed subnets of a VNI that another router with that VNI has,
// too, whose gateway port is on another chassis. gateways are all of the VNI.
func OverlapsElsewhere(vni intent.VNI, exposed []Exposed, gateways []ovn.Gateway, chassis string) []status.Object {
	texts := map[string]string{}
	for _, e := range exposed {
		if e.VNI != vni {
			continue
		}
		for _, g := range gateways {
			if g.Router == e.Router || g.Chassis == "" || g.Chassis == chassis || !overlaps(g, e.Prefix) {
				continue
			}
			text := fmt.Sprintf("%s overlaps a network of %s on chassis %s, whose router has VNI %d, too: the fabric cannot tell the two apart", e.Prefix, g.Port, g.Chassis, vni)
			if old, had := texts[e.Object]; !had || text < old {
				texts[e.Object] = text
			}
		}
	}
	var out []status.Object
	for object, text := range texts {
		out = append(out, status.Object{Kind: kindInterface, Key: object, State: status.Warning, Reason: reason.OverlapElsewhere, Error: text})
	}
	return out
}

func overlaps(g ovn.Gateway, with netip.Prefix) bool {
	return onNetworks(g, func(p netip.Prefix) bool { return p.Overlaps(with) })
}

func hasNetwork(g ovn.Gateway, a netip.Addr) bool {
	return onNetworks(g, func(p netip.Prefix) bool { return p.Contains(a) })
}

// onNetworks tells whether one of the networks of a gateway port's router is such.
func onNetworks(g ovn.Gateway, is func(netip.Prefix) bool) bool {
	for _, column := range g.MACs {
		list, _ := ovn.ParseMACColumn(column) // faults are errors of the object on its own node
		for _, m := range list {
			if slices.ContainsFunc(m.Prefixes, is) {
				return true
			}
		}
	}
	return false
}

// boundTo says of gateway ports, by chassis, where they are.
func boundTo(byChassis map[string][]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(byChassis)) {
		where := "is bound to no chassis"
		if name != "" {
			where = "is bound to chassis " + name
		}
		for _, port := range byChassis[name] {
			words = append(words, port+" "+where)
		}
	}
	return strings.Join(words, ", ")
}
