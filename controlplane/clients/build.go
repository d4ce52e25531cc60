package clients

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/taps"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// The kinds of objects in reports.
const (
	kindBalancer = "load-balancer"
	kindMachine  = "machine"
)

// build is one computation.
type build struct {
	rows     *ovn.Rows
	cfg      Config
	taps     taps.Taps
	book     *acl.Book
	size     int // of tables, by NB_Global
	tables   Tables
	balanced []Balanced
	machines []Machine
	objects  []status.Object
}

func (b *build) compute() {
	on := map[ovn.UUID][]ovn.PortBinding{}
	for _, p := range b.rows.ServedPorts() {
		if _, twice := b.taps.Here[p.LogicalPort]; !twice {
			b.taps.Here[p.LogicalPort] = p
			on[p.Datapath] = append(on[p.Datapath], p)
		}
	}
	var err error
	if b.size, err = loadbalancer.CloudSize(b.rows.TableSize()); err != nil {
		b.say(kindBalancer, "NB_Global", status.Error, reason.BadLoadBalancer, err.Error())
	}
	for _, datapath := range slices.Sorted(maps.Keys(on)) {
		b.onSwitch(datapath, on[datapath])
	}
	slices.SortFunc(b.balanced, func(x, y Balanced) int { return x.VIP.Key.Compare(y.VIP.Key) })
	slices.SortFunc(b.machines, func(x, y Machine) int { return cmp.Compare(x.Port, y.Port) })
	slices.SortFunc(b.objects, func(x, y status.Object) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Error, y.Error))
	})
	b.objects = slices.Compact(b.objects)
}

func (b *build) say(kind, key string, state status.State, why, detail string) {
	b.objects = append(b.objects, status.Object{Kind: kind, Key: key, State: state, Reason: why, Error: detail})
}

// onSwitch decides on the VIPs of a switch, and on its machines here.
func (b *build) onSwitch(datapath ovn.UUID, ports []ovn.PortBinding) {
	d, there := b.rows.Datapath(datapath)
	if !there {
		return
	}
	scope := intent.Switch(d.TunnelKey)
	served := b.vips(datapath, d, scope)
	for _, p := range ports {
		if served {
			b.machine(p, d, scope)
		} else {
			b.idle(p, scope)
		}
	}
}

// vips decides on the VIPs of a switch, and tells whether there are any.
func (b *build) vips(datapath ovn.UUID, d ovn.DatapathBinding, scope intent.VNI) (served bool) {
	balancers, known := b.rows.BalancersOn(datapath)
	if !known || len(balancers) == 0 {
		return false
	}
	net := newNetwork(b.rows, datapath)
	taken := map[intent.VIPKey]string{}
	for _, row := range balancers {
		name := cmp.Or(row.Name, string(row.UUID))
		wrong := func(err error) { b.say(kindBalancer, name, status.Error, reason.BadLoadBalancer, err.Error()) }
		for _, v := range b.rows.VIPs(row, b.size, wrong) {
			want := v.Intent(scope)
			if owner, twice := taken[want.Key]; twice {
				b.say(kindBalancer, name, status.Error, reason.DuplicateAddress, fmt.Sprintf("VIP %s belongs to %s", want.Key, owner))
				continue
			}
			taken[want.Key] = name
			choice := loadbalancer.Choose(v, net.outside)
			b.balanced = append(b.balanced, Balanced{Switch: d.Network(), Balancer: name, VIP: want, Backends: v.Backends, Choice: choice})
			if choice.Path != loadbalancer.PathEBPF {
				want = intent.VIP{Key: want.Key, OVN: true}
			}
			served = true
			b.tables.VIPs[want.Key] = want
			b.neighbors(scope, net, v, choice.Path == loadbalancer.PathEBPF && v.Live())
		}
	}
	return served
}

// idle notes a machine on a switch without VIPs.
func (b *build) idle(p ovn.PortBinding, scope intent.VNI) {
	tap, lack := b.taps.Of(p)
	key := intent.ClientKey{IfIndex: tap.IfIndex, VLAN: tap.VLAN}
	if _, taken := b.tables.Clients[key]; lack.Reason == "" && !taken {
		b.tables.Clients[key] = intent.Client{Key: key, Scope: scope, Idle: true}
	}
}

// neighbors adds where frames for a VIP go, and for its backends, whoever balances it: there
// may be flows from before. The VIP's own row says, too, whether machines are told the MAC
// address, and whether they are answered echo requests.
func (b *build) neighbors(scope intent.VNI, net *network, v loadbalancer.VIP, served bool) {
	at := intent.NeighborKey{Scope: scope, Addr: v.Address.Addr()}
	n := intent.Neighbor{Key: at, VIP: true, Echo: served || b.tables.Neighbors[at].Echo}
	n.MAC, n.Answer = net.answer(at.Addr)
	b.tables.Neighbors[at] = n
	for _, backend := range v.Backends {
		k := intent.NeighborKey{Scope: scope, Addr: backend.Address.Addr()}
		mac, reached := net.way(k.Addr)
		if _, there := b.tables.Neighbors[k]; !there && reached {
			b.tables.Neighbors[k] = intent.Neighbor{Key: k, MAC: mac}
		}
	}
}

// machine decides on a machine on a switch with VIPs.
func (b *build) machine(p ovn.PortBinding, d ovn.DatapathBinding, scope intent.VNI) {
	m := Machine{Port: p.LogicalPort, Switch: d.Network(), State: status.OK}
	tap, lack := b.taps.Of(p)
	key := intent.ClientKey{IfIndex: tap.IfIndex, VLAN: tap.VLAN}
	_, taken := b.tables.Clients[key]
	switch {
	case lack.Reason != "":
		m.State, m.Choice = lack.State, loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: lack.Reason, Detail: lack.Detail}
	case taken:
		m.State = status.Error
		m.Choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.TapConflict, Detail: fmt.Sprintf("another port has the tap %s with VLAN %d", tap.Name, tap.VLAN)}
	default:
		m.Tap = tap
		m.Choice = b.byACLs(p)
		b.tables.Clients[key] = intent.Client{Key: key, Scope: scope, OVN: m.Choice.Path == loadbalancer.PathOVN}
	}
	if m.State != status.OK {
		b.say(kindMachine, p.LogicalPort, m.State, m.Choice.Reason, m.Choice.Detail)
	}
	b.machines = append(b.machines, m)
}

// byACLs decides by the ACLs that see what a machine sends.
func (b *build) byACLs(p ovn.PortBinding) loadbalancer.Choice {
	rules, groups, known := b.rows.ACLsOf(p.LogicalPort, p.Datapath)
	switch {
	case !known && b.cfg.TrustUnknown:
		return loadbalancer.Choice{Path: loadbalancer.PathEBPF, Reason: reason.PathAuto, Detail: "its ACLs are not known (loadBalancing.aclUnknown)"}
	case !known:
		return loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ACLUnknown, Detail: "the port's ACLs are not known"}
	case b.book.ByDestination(rules, packetsOf(p, groups), b.rows.AddressSet):
		return loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ACLByDestination, Detail: "an ACL of the port looks at where packets go, and would see the backend in place of the VIP"}
	}
	return loadbalancer.Choice{Path: loadbalancer.PathEBPF, Reason: reason.PathAuto}
}

// anywhere are addresses that stand for those of a family.
var anywhere = [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}

// packetsOf are what a machine may send to VIPs, as far as ACLs can tell them apart. It may
// have any address: what its port may send from besides its own is for OVN to check.
func packetsOf(p ovn.PortBinding, groups map[string]bool) (out []acl.Packet) {
	for _, dst := range anywhere {
		for _, protocol := range []intent.Protocol{intent.TCP, intent.UDP, intent.SCTP} {
			out = append(out, acl.Packet{Port: p.LogicalPort, Groups: groups, Dst: dst, AnyDst: true, Protocol: uint8(protocol)})
		}
	}
	return out
}
