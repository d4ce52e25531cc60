package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Explain lists what a packet's way needs of OVN's rows and of the intent made
// of them, as far as its ends are in OVN behind this node. An end that is not is
// a route from BGP, which others explain.
func (t *Translator) Explain(rows *ovn.Rows, q status.Query) ([]status.Step, Where) {
	e := &explanation{t: t, rows: rows, q: q}
	src, srcHere := e.behind(q.Src)
	dst, dstHere := e.behind(q.Dst)
	if srcHere {
		e.end(q.Src, src, true)
	}
	if dstHere {
		e.end(q.Dst, dst, false)
	}
	if srcHere || dstHere {
		return e.steps, Here
	}
	return e.steps, e.nobody()
}

// Where tells where the ends of a way are.
type Where uint8

const (
	// Here: one of them at least is in OVN behind this node.
	Here Where = iota
	// OtherVNI: routers here have such a network, and name another VNI.
	OtherVNI
	// Nowhere: no router here has such a network.
	Nowhere
)

// Inside explains a way between two addresses behind one router here, which OVN
// forwards itself. inside is false for all others.
func (t *Translator) Inside(rows *ovn.Rows, q status.Query) (steps []status.Step, inside bool) {
	e := &explanation{t: t, rows: rows, q: q}
	src, srcHere := e.behind(q.Src)
	dst, dstHere := e.behind(q.Dst)
	if !srcHere || !dstHere || src.gateway.Binding.Datapath != dst.gateway.Binding.Datapath {
		return nil, false
	}
	for _, end := range []struct {
		a netip.Addr
		c candidate
	}{{q.Src, src}, {q.Dst, dst}} {
		if !end.c.own {
			e.portOf(end.a, end.c)
		}
	}
	router, _ := rows.Datapath(src.gateway.Binding.Datapath)
	e.add(status.Step{Layer: status.LayerOVN, Object: fmt.Sprintf("router %s", router.Name()), Found: true,
		Detail: "both addresses are behind it: OVN forwards between them itself, and Sluice never sees the packets"})
	return e.steps, true
}

// portOf looks for the port of an address, in a network whose ports are loaded:
// one whose interface names a VNI.
func (e *explanation) portOf(a netip.Addr, c candidate) {
	if nameInterface(e.rows, c.inward).usable() || e.advertised(c) {
		e.host(a, c)
	}
}

func (e *explanation) advertised(c candidate) bool {
	return e.t.cfg.DynamicRouting && e.rows.Advertises(c.inward.RouterPort)
}

// nobody tells that neither end is behind a router here that may be meant, and
// which routers have such a network and another VNI, or a gateway port elsewhere.
func (e *explanation) nobody() Where {
	s := status.Step{Layer: status.LayerOVN, Object: fmt.Sprintf("router interface with %s or %s", e.q.Src, e.q.Dst),
		Detail: "no router with a gateway port on this node has a network with either address",
		Hint:   "ask the node where the router's gateway port is bound"}
	var others []string
	own, _ := e.rows.OwnChassis()
	for _, router := range e.rows.Routers() {
		for _, g := range e.rows.GatewayPorts(router, own.UUID) {
			if len(e.candidates(router, g, e.q.Src))+len(e.candidates(router, g, e.q.Dst)) == 0 {
				continue
			}
			if a := nameGateway(e.rows, e.t.cfg, g); a.usable() {
				others = append(others, fmt.Sprintf("%s (VNI %d)", g.Switch.LogicalPort, a.vni))
			}
		}
	}
	where := Nowhere
	if len(others) > 0 {
		where = OtherVNI
		slices.Sort(others)
		s.Detail = fmt.Sprintf("no gateway port on this node with such a network names VNI %d; these have one and name another: %s",
			e.q.VRF, strings.Join(others, ", "))
		s.Hint = "ask for the VNI of one of them, or ask on the node where the right gateway port is bound"
	}
	e.add(s)
	return where
}

// candidate is a router interface here whose network has an address.
type candidate struct {
	gateway ovn.GatewayPort
	inward  ovn.RouterInterface
	subnet  netip.Prefix
	// own: the address is the gateway port's, and there is no interface.
	own bool
}

type explanation struct {
	t     *Translator
	rows  *ovn.Rows
	q     status.Query
	steps []status.Step
}

func (e *explanation) add(s status.Step) { e.steps = append(e.steps, s) }

// behind finds the router interface here that leads to an address. Tenants use
// the same addresses: the one that names the VNI, on the interface or on the
// gateway port, comes first. One that names none may be where it is missing; one
// that names another VNI is another tenant's.
func (e *explanation) behind(a netip.Addr) (candidate, bool) {
	own, ok := e.rows.OwnChassis()
	if !ok || !a.IsValid() {
		return candidate{}, false
	}
	best, score := candidate{}, 0
	for _, router := range e.rows.Routers() {
		for _, g := range e.rows.GatewayPorts(router, own.UUID) {
			for _, c := range e.candidates(router, g, a) {
				if s := e.score(c); s > score {
					best, score = c, s
				}
			}
		}
	}
	return best, score > 0
}

func (e *explanation) candidates(router ovn.UUID, g ovn.GatewayPort, a netip.Addr) (out []candidate) {
	networks := func(column []string, yes func(netip.Prefix) bool, found func(netip.Prefix)) {
		list, _ := ovn.ParseMACColumn(column) // faults are errors of the object already
		for _, m := range list {
			for _, n := range m.Prefixes {
				if yes(n) {
					found(n)
				}
			}
		}
	}
	networks(g.RouterPort.MAC, func(n netip.Prefix) bool { return n.Addr() == a },
		func(netip.Prefix) { out = append(out, candidate{gateway: g, subnet: host(a), own: true}) })
	for _, i := range e.rows.Interfaces(router) {
		networks(i.RouterPort.MAC, func(n netip.Prefix) bool { return n.Contains(a) },
			func(n netip.Prefix) { out = append(out, candidate{gateway: g, inward: i, subnet: n.Masked()}) })
	}
	return out
}

func (e *explanation) score(c candidate) int {
	names := func(n named) int {
		switch {
		case n.usable() && n.vni == e.q.VRF:
			return 4
		case !n.usable():
			return 1
		}
		return 0
	}
	g := names(nameGateway(e.rows, e.t.cfg, c.gateway))
	if c.own {
		return g
	}
	i := names(nameInterface(e.rows, c.inward))
	if g == 0 && i < 4 || i == 0 && g < 4 {
		return 0
	}
	return g + i
}

// end explains one end that is in OVN behind this node.
func (e *explanation) end(a netip.Addr, c candidate, source bool) {
	e.annotation(c.gateway.Switch, kindGateway, nameGateway(e.rows, e.t.cfg, c.gateway))
	b := c.gateway.Binding
	e.add(status.Step{Layer: status.LayerOVN, Object: "Port_Binding " + b.LogicalPort, Found: true, Detail: b.Type + " bound to this chassis"})
	if !c.own {
		if n := nameInterface(e.rows, c.inward); !n.present && e.advertised(c) {
			e.add(status.Step{Layer: status.LayerOVN, Object: "Port_Binding " + c.inward.Switch.LogicalPort, Found: true,
				Detail: "interface: OVN advertises routes by way of it (Advertised_Route), with evpn.dynamicRouting: on"})
		} else {
			e.annotation(c.inward.Switch, kindInterface, n)
		}
		e.portOf(a, c)
	}
	e.complaints(c)
	vrf := e.t.vrfs[e.q.VRF]
	found := vrf != nil && vrf.index != 0
	e.add(status.Step{Layer: status.LayerIntent, Object: fmt.Sprintf("VRF %s", e.q.VRF), Found: found,
		Hint: hint(found, "a gateway port of this node has to name the VNI; see its errors in sluicectl status")})
	if found {
		e.intent(a, vrf.tables.Set(), source)
	}
}

func hint(found bool, text string) string {
	if found {
		return ""
	}
	return text
}

// annotation tells whether something names the VNI of a port: which row, and in
// which words.
func (e *explanation) annotation(p ovn.PortBinding, kind string, n named) {
	s := status.Step{Layer: status.LayerOVN, Object: "Port_Binding " + p.LogicalPort}
	switch {
	case !n.present:
		s.Detail = fmt.Sprintf("%s: external_ids has no %s, and nothing else that can be seen names a VNI for it", kind, keyVNI)
		s.Hint = setVNI(p.LogicalPort, e.q.VRF)
	case n.fault != nil:
		s.Detail, s.Hint = n.place+": "+n.fault.err.Error(), "correct the value in the Northbound database; the VNI so: "+setVNI(p.LogicalPort, e.q.VRF)
	case n.vni != e.q.VRF:
		s.Detail = fmt.Sprintf("%s: VNI %d, by %s", kind, n.vni, n.place)
		s.Hint = "the interface and the gateway port have to name the same VNI: " + setVNI(p.LogicalPort, e.q.VRF)
	default:
		s.Found, s.Detail = true, fmt.Sprintf("%s: VNI %d, by %s", kind, n.vni, n.place)
	}
	e.add(s)
}

// setVNI is the command that names a VNI on a port. ovn-nbctl wants the colon of
// the key escaped.
func setVNI(port string, vni intent.VNI) string {
	return fmt.Sprintf(`ovn-nbctl set logical_switch_port %s 'external_ids:%s=%d'`, port, strings.ReplaceAll(keyVNI, ":", `\:`), vni)
}

// host tells which port has the address. The subnet is reached without one.
func (e *explanation) host(a netip.Addr, c candidate) {
	quiet := &translation{}
	for _, p := range e.rows.PortsOn(c.inward.Switch.Datapath) {
		if (p.Type != ovn.TypeVIF && p.Type != ovn.TypeVirtual) || !slices.Contains(quiet.addresses(p), a) {
			continue
		}
		live := p.Chassis != "" || p.Up
		e.add(status.Step{Layer: status.LayerOVN, Object: "Port_Binding " + p.LogicalPort, Found: live,
			Detail: fmt.Sprintf("has %s, bound: %t", a, live), Hint: hint(live, "the port is bound to no chassis: is the VM running?")})
		return
	}
	e.add(status.Step{Layer: status.LayerOVN, Object: "Port_Binding with " + a.String(),
		Detail: fmt.Sprintf("no port of the network %s has the address", c.subnet), Hint: "check the address and the port's addresses in the Northbound database"})
}

// complaints adds what is wrong with, or held back of, the ports of the way.
func (e *explanation) complaints(c candidate) {
	ports := []string{c.gateway.Binding.LogicalPort, c.gateway.Switch.LogicalPort, c.gateway.RouterPort.LogicalPort, c.inward.Switch.LogicalPort}
	errs := slices.Clone(e.t.results[c.gateway.Binding.Datapath].Errors)
	if vrf := e.t.vrfs[e.q.VRF]; vrf != nil {
		errs = append(errs, vrf.errors...)
	}
	for _, err := range errs {
		if slices.Contains(ports, err.Name) || err.Kind == kindVRF {
			e.add(status.Step{Layer: status.LayerOVN, Object: err.Kind + " " + err.Name, Detail: err.Reason, Hint: err.Err.Error()})
		}
	}
	for _, n := range e.t.results[c.gateway.Binding.Datapath].Notes {
		if slices.Contains(ports, n.Name) {
			e.add(status.Step{Layer: status.LayerOVN, Object: n.Kind + " " + n.Name, Found: true, Detail: n.Reason + ": " + n.Detail})
		}
	}
}

// intent tells of the rows that carry the packet: the route, the flow that takes
// it out of or into OVN, and the announcement that brings the answer.
func (e *explanation) intent(a netip.Addr, tables wanted.Set, source bool) {
	key, route, ok := longest(wanted.Rows(tables, intent.Routes), e.q.VRF, a)
	s := status.Step{Layer: status.LayerIntent, Object: fmt.Sprintf("route %d %s", e.q.VRF, a), Found: ok && route.Kind == intent.RouteLocal}
	if ok {
		s.Object, s.Detail = "route "+key.String(), route.Kind.String()
	}
	s.Hint = hint(s.Found, "the address is not exposed: see the steps before, or it is opted out or behind NAT")
	e.add(s)
	if !s.Found {
		return
	}
	g := route.Gateway
	if source {
		flow := slices.ContainsFunc(flows(tables, g), func(k intent.SteeringKey) bool { return k.Kind == intent.SteerSource && k.Prefix.Contains(a) })
		e.add(status.Step{Layer: status.LayerIntent, Object: fmt.Sprintf("steering %s source %s", g, a), Found: flow})
	} else {
		_, flow := wanted.Rows(tables, intent.SteeringFlows)[intent.SteeringKey{Gateway: g, Kind: intent.SteerToOVN}]
		e.add(status.Step{Layer: status.LayerIntent, Object: fmt.Sprintf("steering %s to-ovn", g), Found: flow})
	}
	key, _, ok = longest(wanted.Rows(tables, intent.Announcements), e.q.VRF, a)
	s = status.Step{Layer: status.LayerIntent, Object: fmt.Sprintf("announcement %d %s", e.q.VRF, a), Found: ok,
		Hint: hint(ok, "the address is not announced: check the announce mode, and whether the port is bound")}
	if ok {
		s.Object = "announcement " + key.String()
	}
	e.add(s)
}

func flows(tables wanted.Set, g intent.GatewayKey) (out []intent.SteeringKey) {
	for k := range wanted.Rows(tables, intent.SteeringFlows) {
		if k.Gateway == g {
			out = append(out, k)
		}
	}
	return out
}

// longest is the row of the longest prefix with an address.
func longest[V any](table map[intent.RouteKey]V, vni intent.VNI, a netip.Addr) (intent.RouteKey, V, bool) {
	for bits := a.BitLen(); bits >= 0; bits-- {
		k := intent.NewRouteKey(vni, netip.PrefixFrom(a, bits))
		if v, ok := table[k]; ok {
			return k, v, true
		}
	}
	var none V
	return intent.RouteKey{}, none, false
}
