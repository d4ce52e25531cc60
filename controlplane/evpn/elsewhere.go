package evpn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
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
		s.Hint = fmt.Sprintf("associate the BGPVPN in Neutron, or set external_ids:%s on the ports of the router", keyVNI)
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

func hasNetwork(g ovn.Gateway, a netip.Addr) bool {
	for _, column := range g.MACs {
		list, _ := ParseMACColumn(column) // faults are errors of the object on its own node
		for _, m := range list {
			if slices.ContainsFunc(m.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) }) {
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
