package ovn

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/multimap"
)

// GatewayPort is a gateway port of a router as four rows show it.
type GatewayPort struct {
	// Binding is the row whose chassis says where the gateway is: the
	// chassisredirect row, or the l3gateway row itself.
	Binding PortBinding
	// RouterPort is the router's side (lrp-…); Switch the provider switch's
	// side, which carries what the cloud wrote on the Logical_Switch_Port.
	RouterPort, Switch PortBinding
	// Localnet is the provider switch's localnet port; HasLocalnet is false
	// when there is none.
	Localnet    PortBinding
	HasLocalnet bool
}

// RouterInterface is a router port that leads to a tenant switch.
type RouterInterface struct {
	RouterPort, Switch PortBinding
}

// GatewayPorts lists the gateway ports of a router that are bound to chassis,
// by name. An l3gateway port counts when its switch has a localnet port: the
// other l3gateway ports of a gateway router lead inwards.
func (r *Rows) GatewayPorts(router, chassis UUID) []GatewayPort {
	var out []GatewayPort
	for _, p := range r.PortsOn(router) {
		if chassis == "" || p.Chassis != chassis {
			continue
		}
		if g, ok := r.gatewayPort(p); ok {
			out = append(out, g)
		}
	}
	return out
}

// GatewayPortsToCome lists the gateway ports of a router that an HA_Chassis_Group
// may bring to this node, by name; those that are here are among them.
func (r *Rows) GatewayPortsToCome(router UUID) []GatewayPort {
	var out []GatewayPort
	for _, p := range r.PortsOn(router) {
		// Only groups that name this node are followed.
		if _, ours := r.haGroups[p.HAChassisGroup]; !ours {
			continue
		}
		if g, ok := r.gatewayPort(p); ok {
			out = append(out, g)
		}
	}
	return out
}

func (r *Rows) gatewayPort(p PortBinding) (GatewayPort, bool) {
	g := GatewayPort{Binding: p, RouterPort: p}
	switch p.Type {
	case TypeChassisRedirect:
		lrp, ok := r.Port(p.Options["distributed-port"])
		if !ok || lrp.Datapath != p.Datapath {
			return g, false
		}
		g.RouterPort = lrp
	case TypeL3Gateway:
	default:
		return g, false
	}
	sw, ok := r.Peer(g.RouterPort)
	if !ok || sw.Datapath == p.Datapath {
		return g, false
	}
	g.Switch = sw
	g.Localnet, g.HasLocalnet = r.Localnet(sw.Datapath)
	if p.Type == TypeL3Gateway && !g.HasLocalnet {
		return g, false
	}
	return g, true
}

// Interfaces lists the router's ports that lead to a switch and are no gateway
// port of any chassis, by the name of the router's side.
func (r *Rows) Interfaces(router UUID) []RouterInterface {
	ports := r.PortsOn(router)
	gateway := map[string]bool{}
	for _, p := range ports {
		if p.Type == TypeChassisRedirect {
			gateway[p.Options["distributed-port"]] = true
		}
	}
	var out []RouterInterface
	for _, p := range ports {
		if (p.Type != TypePatch && p.Type != TypeL3Gateway) || gateway[p.LogicalPort] {
			continue
		}
		sw, ok := r.Peer(p)
		if !ok || sw.Datapath == router {
			continue
		}
		if d, ok := r.Datapath(sw.Datapath); ok && d.IsRouter() {
			continue
		}
		if _, provider := r.Localnet(sw.Datapath); provider && p.Type == TypeL3Gateway {
			continue
		}
		out = append(out, RouterInterface{RouterPort: p, Switch: sw})
	}
	return out
}

// Localnet is the localnet port of a switch, the first by name.
func (r *Rows) Localnet(datapath UUID) (PortBinding, bool) {
	var best PortBinding
	for id := range r.localnets.All(datapath) {
		p := r.ports[id]
		if best.UUID == "" || p.LogicalPort < best.LogicalPort || (p.LogicalPort == best.LogicalPort && p.UUID < best.UUID) {
			best = p
		}
	}
	return best, best.UUID != ""
}

// BridgeOf is the provider bridge of a physical network, by
// ovn-bridge-mappings ("physnet1:br-ex,physnet2:br-vlan").
func (r *Rows) BridgeOf(network string) (string, bool) {
	b, ok := r.mappings[network]
	return b, ok
}

// IntegrationBridge is the name in ovn-bridge, br-int by default.
func (r *Rows) IntegrationBridge() string {
	if b := r.External("ovn-bridge"); b != "" {
		return b
	}
	return "br-int"
}

// ParseMappings reads "network:bridge,…". An entry that is not of this form is
// left out, as ovn-controller does.
func ParseMappings(s string) map[string]string {
	out := map[string]string{}
	for entry := range strings.SplitSeq(s, ",") {
		network, bridge, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if ok && network != "" && bridge != "" {
			out[network] = bridge
		}
	}
	return out
}

var ourPort = regexp.MustCompile(`^sluice[0-9]+-ovs$`)

// ForeignPorts lists the ports of a bridge that are neither the bridge's own,
// nor OVN's patch ports, nor Sluice's, sorted. It is false when the bridge is
// not there or its ports have not all come.
func (r *Rows) ForeignPorts(bridge string) ([]string, bool) {
	id, ok := multimap.First(r.bridgeName, bridge)
	if !ok {
		return nil, false
	}
	var out []string
	for _, pid := range r.bridges[id].Ports {
		p, ok := r.vsPorts[pid]
		if !ok {
			return nil, false
		}
		// ovn-controller marks its patch ports with ovn-localnet-port, or
		// ovn-l2gateway-port, in Port.external_ids.
		if p.Name == bridge || ourPort.MatchString(p.Name) ||
			p.ExternalIDs["ovn-localnet-port"] != "" || p.ExternalIDs["ovn-l2gateway-port"] != "" {
			continue
		}
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out, true
}

// OnlyOVN tells whether a bridge has no port but the bridge's own, OVN's patch
// ports and Sluice's: nobody else can be asked behind it but the node itself, if
// it has addresses there (HostAddresses).
func (r *Rows) OnlyOVN(bridge string) bool {
	foreign, ok := r.ForeignPorts(bridge)
	return ok && len(foreign) == 0
}
