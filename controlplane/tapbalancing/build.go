package tapbalancing

import (
	"cmp"
	"fmt"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// The kinds of objects in reports.
const (
	kindBalancer = "load-balancer"
	kindVM       = "vm"
)

// build is what the switches of one step are computed with.
type build struct {
	rows *ovn.Rows
	cfg  Config
	// complete: no row of Northbound is still to come.
	complete bool
	// whole: all switches are computed, perhaps from another store.
	whole    bool
	readings *loadbalancer.Book
	book     *acl.Book
	size     int // of tables, by NB_Global
	devices  map[string]intent.TapDevice
	// beyond are the networks of routers, which many switches share.
	beyond map[ovn.UUID][]side
}

// draft is the outcome of a switch as it is made.
type draft struct {
	*build
	// last is what was decided before; nil: nothing. waits: some of it counts, since rows are
	// still to come.
	last  *outcome
	waits bool
	out   outcome
	// before is what ACLs said of the same VIPs.
	before map[string]loadbalancer.Choice
	at     ovn.UUID
	name   string // as people know it
	taps   vmports.Taps
}

// outcome decides on the VIPs of a switch, and on its VMs here; nil: there are none, or
// its row is still to come. waits: it is to be computed again when Northbound is in sync.
func (b *build) outcome(at ovn.UUID, last *outcome) (out *outcome, waits bool) {
	ports := b.rows.ServedOn(at)
	row, there := b.rows.Datapath(at)
	if len(ports) == 0 || !there {
		return nil, false
	}
	d := &draft{build: b, last: last, at: at, name: row.Network(), taps: vmports.Taps{Rows: b.rows, Devices: b.devices, Here: map[string]ovn.PortBinding{}}}
	d.out.scope = intent.Switch(row.TunnelKey)
	served := d.vips()
	for _, p := range ports {
		if parent, here := b.rows.ServedPort(p.ParentPort); here {
			d.taps.Here[p.ParentPort] = parent
		}
		if served {
			d.vm(p)
		} else {
			d.idle(p)
		}
	}
	return &d.out, d.waits
}

func (d *draft) say(kind, key string, state status.State, why, detail string) {
	d.out.objects = append(d.out.objects, status.Object{Kind: kind, Key: key, State: state, Reason: why, Error: detail})
}

// vips decides on the VIPs of the switch, and tells whether there are any.
func (d *draft) vips() (served bool) {
	balancers, known := d.rows.BalancersOn(d.at)
	switch {
	case !known && !d.complete && d.last != nil && d.last.scope == d.out.scope:
		return d.keep()
	case !known || len(balancers) == 0:
		return false
	}
	net := d.network(d.at)
	d.out.vips, d.out.neighbors = map[intent.VIPKey]intent.VIP{}, map[intent.NeighborKey]intent.Neighbor{}
	taken := map[intent.VIPKey]string{}
	for _, row := range balancers {
		name := cmp.Or(row.Name, string(row.UUID))
		wrong := func(err error) { d.say(kindBalancer, name, status.Error, reason.BadLoadBalancer, err.Error()) }
		for _, v := range d.readings.VIPs(row, d.size, wrong) {
			want := v.Intent(d.out.scope)
			if owner, twice := taken[want.Key]; twice {
				d.say(kindBalancer, name, status.Error, reason.DuplicateAddress, fmt.Sprintf("VIP %s/%s of switch %s belongs to %s", endpoint(v.Address), want.Key.Protocol, d.name, owner))
				continue
			}
			taken[want.Key] = name
			choice := loadbalancer.Choose(v, net.outside)
			d.out.balanced = append(d.out.balanced, loadbalancer.Balanced{Switch: d.name, Balancer: name, VIP: want, Backends: v.Backends, Choice: choice})
			if choice.Path == loadbalancer.PathEBPF {
				d.out.judged.vips = append(d.out.judged.vips, v)
			} else {
				want = want.ByOVN()
			}
			served = true
			d.out.vips[want.Key] = want
			d.neighbor(net, v, choice.Path == loadbalancer.PathEBPF && v.Live())
		}
	}
	return served
}

// keep has what was decided on the VIPs.
func (d *draft) keep() (served bool) {
	d.waits = true
	d.out.vips, d.out.neighbors, d.out.balanced, d.out.judged.vips = d.last.vips, d.last.neighbors, d.last.balanced, d.last.judged.vips
	for _, o := range d.last.objects {
		if o.Kind == kindBalancer {
			d.out.objects = append(d.out.objects, o)
		}
	}
	return len(d.out.vips) > 0
}

// neighbor adds where frames for a VIP go, and for its backends, whoever balances it: there
// may be flows from before. The VIP's own row says, too, whether VMs are told the MAC
// address, and whether they are answered echo requests.
func (d *draft) neighbor(net *network, v loadbalancer.VIP, served bool) {
	at := intent.NeighborKey{Scope: d.out.scope, Addr: v.Address.Addr()}
	n := intent.Neighbor{Key: at, VIP: true, Echo: served || d.out.neighbors[at].Echo}
	n.MAC, n.Answer = net.answer(at.Addr)
	d.out.neighbors[at] = n
	for _, backend := range v.Backends {
		k := intent.NeighborKey{Scope: d.out.scope, Addr: backend.Address.Addr()}
		mac, reached := net.macOf(k.Addr)
		if _, there := d.out.neighbors[k]; !there && reached {
			d.out.neighbors[k] = intent.Neighbor{Key: k, MAC: mac}
		}
	}
}

// idle notes a VM on a switch without VIPs.
func (d *draft) idle(p ovn.PortBinding) {
	if tap, lack := d.taps.Of(p); lack.Reason == "" {
		d.claim(p, tap, intent.TapClient{Idle: true})
	}
}

func (d *draft) claim(p ovn.PortBinding, tap intent.Tap, row intent.TapClient) {
	row.Key, row.Scope = keyOf(tap), d.out.scope
	d.out.claims = append(d.out.claims, claim{d.at, p.LogicalPort, row})
}

// vm decides on a VM on a switch with VIPs. Whether another one has its tap is
// decided with the VMs of all switches.
func (d *draft) vm(p ovn.PortBinding) {
	m := VM{Port: p.LogicalPort, Switch: d.name, State: status.OK}
	tap, lack := d.taps.Of(p)
	if lack.Reason != "" {
		m.State, m.Choice = lack.State, loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: lack.Reason, Detail: lack.Detail}
	} else {
		choice, settled := d.byACLs(p)
		m.Tap, m.Choice = tap, choice
		// Until then nobody notes what is whose: it may have come with its connections.
		d.claim(p, tap, intent.TapClient{Idle: !settled, OVN: settled && choice.Path == loadbalancer.PathOVN})
		switch {
		case !settled:
			m.State = status.Pending
		case choice.Reason == reason.ACLUnknown:
			m.State = status.Warning
		}
	}
	if m.State != status.OK {
		d.out.objects = append(d.out.objects, complaint(m))
	}
	d.out.vms = append(d.out.vms, m)
}

func complaint(m VM) status.Object {
	return status.Object{Kind: kindVM, Key: m.Port, State: m.State, Reason: m.Choice.Reason, Error: m.Choice.Detail}
}
