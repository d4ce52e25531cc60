package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
)

// Scenario declares what a lab consists of. It is plain data: Up makes it true.
type Scenario struct {
	Name string
	// AS is the autonomous system of the fabric (iBGP everywhere).
	AS     uint32
	Clouds []Cloud
	// Reflectors are FRR route reflectors for EVPN, one namespace each.
	Reflectors []string
	// BFD makes the reflectors able to do BFD: see ReflectorBFD.
	BFD bool
	// Peers are provider edges without Sluice.
	Peers []Peer
}

// Cloud is one OVN deployment: a database pair, ovn-northd and its chassis.
type Cloud struct {
	Name      string
	Chassis   []Chassis
	Providers []Provider
	Tenants   []Tenant
	VMs       []VM
	// RemoteTCP makes the nodes reach the databases by TCP over the underlay
	// instead of by unix socket. So does a Central that is not the zero value.
	RemoteTCP bool
	Central   Central
	// Programs is a directory with another OVN and Open vSwitch than the machine's,
	// as tools/ovn.sh makes it.
	Programs string
	// KernelDatapath makes Open vSwitch use the kernel's datapath in place of the
	// userspace one. It needs the kernel modules openvswitch and geneve.
	KernelDatapath bool
	// DirectPlug makes the taps themselves ports of Open vSwitch, without a Linux bridge
	// in between. Programs on taps then need the kernel's datapath.
	DirectPlug bool
	// OwnNetns gives each chassis a /run/netns of its own, as machines have: what makes
	// namespaces with fixed names would make them twice otherwise.
	OwnNetns bool
	// API adds the node "api", where clients of OpenStack's APIs are: see StartControllers.
	API bool
}

// Central says how a cloud serves its databases. The zero value is one server
// each, with the schema of the installed OVN.
type Central struct {
	// Members above 1 makes a RAFT cluster of each database, with a node a member:
	// CLOUD-central, CLOUD-central2 and so on. The chassis know all of them.
	Members int
	// Relay adds node CLOUD-relay, which stands between the chassis and the
	// Southbound database.
	Relay bool
	// TLS makes the nodes reach the databases over ssl. Each has a certificate
	// with its own name; a chassis finds it in the SSL table of its switch.
	TLS bool
	// RBAC gives the chassis the role ovn-controller in the Southbound database.
	// It needs TLS.
	RBAC bool
	// Schemas is a directory with other schemas: ovn-nb.ovsschema and
	// ovn-sb.ovsschema.
	Schemas string
}

const maxMembers = 9

func (c Central) validate() error {
	if c.RBAC && !c.TLS {
		return errors.New("RBAC needs TLS: a chassis is known by its certificate")
	}
	if c.Members < 0 || c.Members > maxMembers {
		return fmt.Errorf("%d database members: want 1 to %d", c.Members, maxMembers)
	}
	return nil
}

// Chassis is one node with Open vSwitch and ovn-controller.
type Chassis struct {
	Name string
	// Gateway sets enable-chassis-as-gw in ovn-cms-options.
	Gateway bool
	// Priority orders the gateway chassis of every router of the cloud: the
	// highest is active. 0 leaves the node out.
	Priority int
}

// Uplink is what is on a provider bridge besides OVN.
type Uplink string

// The kinds of uplink.
const (
	// UplinkNone: no port at all; next hops are served by Sluice.
	UplinkNone Uplink = ""
	// UplinkPort: a physical port to a bridge shared by the cloud's chassis.
	UplinkPort Uplink = "port"
	// UplinkGateway: a physical port, and behind it a router that owns the next
	// hop: node CLOUD-PROVIDER-gw.
	UplinkGateway Uplink = "gateway"
)

// Provider is a provider network of a cloud.
type Provider struct {
	// Name is the logical switch and, with prefix "provnet-", its localnet port.
	Name string
	// Physnet and Bridge make an ovn-bridge-mappings entry. Several providers
	// with different VLANs may share a pair.
	Physnet, Bridge  string
	VLAN             uint16
	Subnet4, Subnet6 netip.Prefix
	Uplink           Uplink
}

// NextHops are the addresses of the network's default gateway: the first ones.
func (p Provider) NextHops() (v4, v6 netip.Addr) {
	if p.Subnet4.IsValid() {
		v4 = p.Subnet4.Masked().Addr().Next()
	}
	if p.Subnet6.IsValid() {
		v6 = p.Subnet6.Masked().Addr().Next()
	}
	return v4, v6
}

// Tenant is one project: its networks, and one router with a gateway port.
type Tenant struct {
	Name string
	// VNI and AS are written as neutron_bgpvpn:vni and :as on the switch ports of
	// the router's gateway and interfaces. VNI 0 writes nothing.
	VNI, AS uint32
	// Provider names the network of the gateway port. Empty: no gateway.
	Provider string
	// GatewayChassis is the only chassis of the gateway port. Empty: all with a
	// priority.
	GatewayChassis string
	Networks       []Network
	// SNAT adds source NAT for the networks that are not exposed.
	SNAT bool
	// NoRouter leaves the networks without a router.
	NoRouter bool
}

// Network is a tenant network with one subnet per family.
type Network struct {
	Name             string
	Subnet4, Subnet6 netip.Prefix
	// Unexposed leaves the annotation off this network's interface port.
	Unexposed bool
	// ID is the network's id in Neutron; its logical switch is called neutron-ID then,
	// as Neutron calls it.
	ID string
	// Metadata adds the metadata port that Neutron makes, a localport. It needs ID.
	Metadata bool
	// MTU of the network and its machines. 0: VMMTU.
	MTU int
}

// VM is a virtual machine, or only its logical port.
type VM struct {
	Name string
	// Chassis is where it runs. For a phantom it may be empty.
	Chassis         string
	Tenant, Network string
	Addr4, Addr6    netip.Addr
	// MAC is derived from the name when empty.
	MAC string
	// Instance and Project are neutron:device_id and neutron:project_id of its port.
	// Empty: they are not written.
	Instance, Project string
	// Phantom makes the logical port only and binds it to a chassis that exists
	// in the Southbound database alone: hosts for scale tests.
	Phantom bool
}

// Peer is a provider edge without Sluice.
type Peer struct {
	Name string
	VRFs []PeerVRF
	// Underlay6 makes it tunnel over IPv6.
	Underlay6 bool
	// FRR makes it a router with FRR and VRF devices, and each VRF's namespace a
	// host behind it. It needs the kernel module vrf.
	FRR bool
}

// PeerVRF is one tenant at a peer.
type PeerVRF struct {
	VNI uint32
	// Addrs live in the VRF's namespace, and their subnets are announced as
	// Type-5. The first address of a subnet is FRR's own if the peer runs FRR.
	Addrs []netip.Prefix
}

// VMMTU is the MTU of virtual machines: Geneve and VXLAN over IPv6 fit into 1500.
const VMMTU = 1400

var nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Validate tells the first thing that is wrong with the scenario.
func (s Scenario) Validate() error {
	seen := map[string]bool{fabricNode: true}
	claim := func(kind, name string) error {
		if !nameRE.MatchString(name) {
			return fmt.Errorf("%s name %q: want lower case letters, digits and dashes", kind, name)
		}
		if seen[name] {
			return fmt.Errorf("%s name %q is used twice", kind, name)
		}
		seen[name] = true
		return nil
	}
	for _, c := range s.Clouds {
		if err := c.validate(claim); err != nil {
			return fmt.Errorf("cloud %q: %w", c.Name, err)
		}
	}
	for _, r := range s.Reflectors {
		if err := claim("reflector", r); err != nil {
			return err
		}
	}
	for _, p := range s.Peers {
		if err := errors.Join(claim("peer", p.Name), p.validate()); err != nil {
			return err
		}
		for _, v := range p.VRFs {
			if err := claim("vrf", VRFNode(p.Name, v.VNI)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p Peer) validate() error {
	if p.FRR && p.Underlay6 {
		return fmt.Errorf("peer %q: FRR 8.4 has no VTEPs of IPv6", p.Name)
	}
	for _, v := range p.VRFs {
		for _, a := range v.Addrs {
			if p.FRR && a.Addr() == routerOf(a) {
				return fmt.Errorf("peer %q: %s is the router's own address", p.Name, a)
			}
		}
	}
	return nil
}

func (c Cloud) validate(claim func(kind, name string) error) error {
	if err := c.Central.validate(); err != nil {
		return err
	}
	for _, name := range append(c.members(), c.relays()...) {
		if err := claim("cloud", name); err != nil {
			return err
		}
	}
	for _, ch := range c.Chassis {
		if err := claim("chassis", ch.Name); err != nil {
			return err
		}
	}
	if c.API {
		if err := claim("cloud", apiNode); err != nil {
			return err
		}
	}
	for _, p := range c.Providers {
		if p.Uplink == UplinkGateway {
			if err := claim("gateway", c.gatewayNode(p)); err != nil {
				return err
			}
		}
		switch p.Uplink {
		case UplinkNone, UplinkPort, UplinkGateway:
		default:
			return fmt.Errorf("provider %q: uplink %q: want port, gateway or nothing", p.Name, p.Uplink)
		}
		if p.Physnet == "" || p.Bridge == "" {
			return fmt.Errorf("provider %q: physnet and bridge are needed", p.Name)
		}
	}
	for _, t := range c.Tenants {
		if _, err := c.provider(t.Provider); t.Provider != "" && err != nil {
			return fmt.Errorf("tenant %q: %w", t.Name, err)
		}
		for _, n := range t.Networks {
			if err := n.validate(); err != nil {
				return fmt.Errorf("tenant %q: %w", t.Name, err)
			}
		}
	}
	for _, vm := range c.VMs {
		if err := claim("vm", vm.Name); err != nil {
			return err
		}
		if err := c.checkVM(vm); err != nil {
			return err
		}
	}
	return nil
}

func (n Network) validate() error {
	if n.Metadata && n.ID == "" {
		return fmt.Errorf("network %q: its metadata port needs its id", n.Name)
	}
	return nil
}

func (c Cloud) checkVM(vm VM) error {
	if _, err := c.network(vm.Tenant, vm.Network); err != nil {
		return fmt.Errorf("vm %q: %w", vm.Name, err)
	}
	if vm.Phantom {
		return nil
	}
	for _, ch := range c.Chassis {
		if ch.Name == vm.Chassis {
			return nil
		}
	}
	return fmt.Errorf("vm %q: there is no chassis %q", vm.Name, vm.Chassis)
}

func (c Cloud) gatewayNode(p Provider) string { return c.Name + "-" + p.Name + "-gw" }
func (c Cloud) provider(name string) (Provider, error) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, nil
		}
	}
	return Provider{}, fmt.Errorf("there is no provider network %q", name)
}

// network is a tenant's, or without a tenant the provider network of that name.
func (c Cloud) network(tenant, network string) (Network, error) {
	if tenant == "" {
		p, err := c.provider(network)
		return Network{Name: p.Name, Subnet4: p.Subnet4, Subnet6: p.Subnet6}, err
	}
	for _, t := range c.Tenants {
		if t.Name != tenant {
			continue
		}
		for _, n := range t.Networks {
			if n.Name == network {
				return n, nil
			}
		}
	}
	return Network{}, fmt.Errorf("there is no network %q of tenant %q", network, tenant)
}
