package evpn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// What else than the BGPVPN vocabulary names a VNI.
const (
	// keyPortVNI is on Logical_Router_Port.external_ids: Neutron's EVPN service.
	keyPortVNI = "vni"
	// keyVRFID and optionVRFName are options of Logical_Router. northd copies the
	// first to Datapath_Binding.external_ids, from OVN 25.03.2 on, and the second to
	// the Port_Bindings of gateway ports, from 25.03 on.
	keyVRFID      = "dynamic-routing-vrf-id"
	optionVRFName = "dynamic-routing-vrf-name"
	// optionDynamic is on the Port_Bindings of a router with dynamic routing.
	optionDynamic = "dynamic-routing"
)

// named is what all places together say of a port.
type named struct {
	annotation
	present bool
	fault   *fault
	// place is the one that counts: a row and a key.
	place string
	// others are places that say something else, each as a sentence.
	others []string
}

func (n named) usable() bool { return n.present && n.fault == nil }

// saying is what one place says.
type saying struct {
	place string
	annotation
	fault *fault
}

// join takes the first place, and lists those after it that say otherwise.
func join(list []saying) named {
	if len(list) == 0 {
		return named{}
	}
	first := list[0]
	n := named{annotation: first.annotation, present: true, fault: first.fault, place: first.place}
	for _, s := range list[1:] {
		switch {
		case s.fault != nil:
			n.others = append(n.others, fmt.Sprintf("%s cannot be read (%v); what counts is %s", s.place, s.fault.err, first.place))
		case first.fault == nil && s.vni != first.vni:
			n.others = append(n.others, fmt.Sprintf("%s names VNI %d; what counts is %s, which names %d", s.place, s.vni, first.place, first.vni))
		}
	}
	return n
}

// nameGateway reads what names the VNI of a gateway port, the nearest and most
// explicit place first: the switch's side of the port, the router's side, the
// switch, the router's port that Neutron's EVPN service made, the router's VRF.
func nameGateway(rows *ovn.Rows, cfg Config, p ovn.GatewayPort) named {
	list := near(rows, p.RouterPort, p.Switch)
	list = append(list, evpnPorts(rows, p.Binding)...)
	list = append(list, vrfOptions(rows, cfg, p)...)
	n := join(list)
	if n.usable() {
		n.fault = n.fillIn(p.Switch.ExternalIDs, switchKeys(rows, p.Switch))
	}
	return n
}

// nameInterface reads what names the VNI of a router interface. What is said of
// the router as a whole does not expose its networks.
func nameInterface(rows *ovn.Rows, i ovn.RouterInterface) named {
	return join(near(rows, i.RouterPort, i.Switch))
}

// near are the places that speak of one port.
func near(rows *ovn.Rows, router, sw ovn.PortBinding) (list []saying) {
	if a, present, f := readAnnotation(sw.ExternalIDs); present {
		list = append(list, saying{fmt.Sprintf("external_ids:%s of Port_Binding %s", keyVNI, sw.LogicalPort), a, f})
	}
	if s, ok := portVNI(router); ok {
		list = append(list, s)
	}
	if a, present, f := readAnnotation(switchKeys(rows, sw)); present {
		d, _ := rows.Datapath(sw.Datapath)
		list = append(list, saying{fmt.Sprintf("external_ids:%s of Logical_Switch %s", keyVNI, d.Name()), a, f})
	}
	return list
}

// switchKeys are external_ids of the switch, which the Northbound database alone
// has.
func switchKeys(rows *ovn.Rows, port ovn.PortBinding) map[string]string {
	sw, _ := rows.Switch(port.Datapath)
	return sw.ExternalIDs
}

func portVNI(p ovn.PortBinding) (saying, bool) {
	text, ok := p.ExternalIDs[keyPortVNI]
	if !ok {
		return saying{}, false
	}
	s := saying{place: fmt.Sprintf("external_ids:%s of Port_Binding %s", keyPortVNI, p.LogicalPort)}
	var err error
	if s.vni, err = parseVNI(text); err != nil {
		s.fault = &fault{reason.BadVNI, fmt.Errorf("external_ids:%s: %w", keyPortVNI, err)}
	}
	return s, true
}

// evpnPorts are the other gateway ports of the router that name a VNI and lead to
// no provider network: Neutron's EVPN service makes one for each router, on a
// switch that stands for the VNI.
func evpnPorts(rows *ovn.Rows, binding ovn.PortBinding) (list []saying) {
	for _, p := range rows.PortsOn(binding.Datapath) {
		if p.Type != ovn.TypeChassisRedirect || p.LogicalPort == binding.LogicalPort || onProvider(rows, p) {
			continue
		}
		if s, ok := portVNI(p); ok {
			list = append(list, s)
		}
	}
	return list
}

// onProvider tells whether a chassisredirect port's switch has a localnet port.
func onProvider(rows *ovn.Rows, p ovn.PortBinding) bool {
	lrp, _ := rows.Port(p.Options["distributed-port"])
	sw, ok := rows.Peer(lrp)
	if ok {
		_, ok = rows.Localnet(sw.Datapath)
	}
	return ok
}

// standsForVNI tells whether a gateway port is one of evpnPorts for another one of
// its router. No packet comes by way of it.
func standsForVNI(rows *ovn.Rows, p ovn.GatewayPort) bool {
	if _, ok := p.RouterPort.ExternalIDs[keyPortVNI]; !ok || p.HasLocalnet {
		return false
	}
	for _, q := range rows.PortsOn(p.Binding.Datapath) {
		if q.Type == ovn.TypeChassisRedirect && onProvider(rows, q) {
			return true
		}
	}
	return false
}

// vrfOptions read the router's VRF. A name that ends with the VNI, as other
// programs call these VRFs, is plain enough. The identifier is a routing table's:
// it is a VNI where Sluice is told that routers with dynamic routing are its own.
func vrfOptions(rows *ovn.Rows, cfg Config, p ovn.GatewayPort) (list []saying) {
	d, _ := rows.Datapath(p.Binding.Datapath)
	id, name := d.ExternalIDs[keyVRFID], p.Binding.Options[optionVRFName]
	if name == "" {
		name = p.RouterPort.Options[optionVRFName]
	}
	if lr, ok := rows.Router(p.Binding.Datapath); ok {
		if id == "" {
			id = lr.Options[keyVRFID]
		}
		if name == "" {
			name = lr.Options[optionVRFName]
		}
	}
	vni, plain := vniOfVRF(name)
	if plain {
		s := saying{place: fmt.Sprintf("options:%s=%s of router %s", optionVRFName, name, d.Name())}
		s.vni = vni
		list = append(list, s)
	}
	if id != "" && (plain || cfg.DynamicRouting) {
		s := saying{place: fmt.Sprintf("options:%s=%s of router %s", keyVRFID, id, d.Name())}
		var err error
		if s.vni, err = parseVNI(id); err != nil {
			s.fault = &fault{reason.BadVNI, fmt.Errorf("options:%s: %w", keyVRFID, err)}
		}
		list = append(list, s)
	}
	return list
}

// ovnTable is the routing table that ovn-controller writes what it advertises of the
// router to, and learns routes from: its identifier where northd copies that, else the
// router's tunnel key.
func ovnTable(rows *ovn.Rows, p ovn.GatewayPort) uint32 {
	if !ovsdb.Bool(p.Binding.Options, optionDynamic) && !ovsdb.Bool(p.RouterPort.Options, optionDynamic) {
		return 0
	}
	d, _ := rows.Datapath(p.Binding.Datapath)
	if n, err := strconv.ParseUint(d.ExternalIDs[keyVRFID], 10, 32); err == nil && n != 0 {
		return uint32(n)
	}
	return d.TunnelKey
}

// vniOfVRF reads the VNI in vrf-VNI and evpnvrf-VNI.
func vniOfVRF(name string) (intent.VNI, bool) {
	for _, prefix := range []string{"evpnvrf-", "vrf-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			vni, err := parseVNI(rest)
			return vni, err == nil && vni.String() == rest
		}
	}
	return 0, false
}

// fillIn takes the AS and the route targets, where what names the VNI has none,
// from the first of these that has: unless it speaks of another VNI, or of
// something else than routes.
func (n *named) fillIn(sources ...map[string]string) *fault {
	if n.asn != 0 || len(n.imports)+len(n.exprt) > 0 {
		return nil
	}
	for _, ext := range sources {
		if kind, ok := ext[keyType]; ok && kind != typeL3 {
			continue
		}
		if text, ok := ext[keyVNI]; ok {
			if vni, err := parseVNI(text); err != nil || vni != n.vni {
				continue
			}
		}
		if f := readPolicy(ext, &n.annotation); f != nil || n.asn != 0 || len(n.imports)+len(n.exprt) > 0 {
			return f
		}
	}
	return nil
}

// switchesPending tells whether the Northbound row of a switch at a router's ports
// is about to come.
func switchesPending(rows *ovn.Rows, router ovn.UUID) bool {
	if !rows.ExpectsNB() {
		return false
	}
	for _, p := range rows.PortsOn(router) {
		sw, ok := rows.Peer(p)
		if !ok || sw.Datapath == router {
			continue
		}
		if d, ok := rows.Datapath(sw.Datapath); !ok || d.IsRouter() {
			continue
		}
		if _, seen := rows.Switch(sw.Datapath); !seen {
			return true
		}
	}
	return false
}
