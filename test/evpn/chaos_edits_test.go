package evpn_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// edit is a change of a cloud's Northbound database.
func edit(cloud, text string, do func(context.Context, *world) error) event {
	return event{text: "cloud " + cloud + ": " + text, kind: "edit of OVN", edit: true, needs: []string{"nb:" + cloud}, touches: nobody, do: do}
}

// moveGateway: OVN has a hole of its own in a move, in which the node that had the
// port relays.
func (p *planner) moveGateway() event {
	tenant := pick(p, "red", "blue")
	to := map[string]string{"a1": "a2", "a2": "a1"}[p.gateway[tenant]]
	from, behind := p.gateway[tenant], p.behind
	e := edit("a", fmt.Sprintf("gateway of %s moves to %s", tenant, to), func(ctx context.Context, w *world) error {
		port := lab.GatewayPort(tenant)
		_, err := w.NB(ctx, "a", "lrp-set-gateway-chassis", port, to, "20", "--", "lrp-set-gateway-chassis", port, from, "10")
		return err
	})
	e.kind, e.loses = "gateway move", some
	e.touches = func(q *pair) bool { return q.tenant == tenant && (q.from.cloud == "a" || q.to.cloud == "a") }
	e.plans = func() { p.gateway[tenant], behind[tenant][to] = to, true }
	return e
}

// changeVNI gives a tenant another VNI, cloud by cloud: meanwhile its parts are
// strangers.
func (p *planner) changeVNI() event {
	tenant := pick(p, "red", "blue")
	vni := map[int]int{vniRed: vniRed + 1, vniRed + 1: vniRed, vniBlue: vniBlue + 1, vniBlue + 1: vniBlue}[p.vni[tenant]]
	pause := p.upTo(time.Second)
	e := event{
		text: fmt.Sprintf("VNI of %s becomes %d, %d ms between clouds", tenant, vni, pause.Milliseconds()), kind: "other VNI", edit: true,
		loses: all, touches: p.ofTenant(tenant), lasts: time.Duration(len(chaosClouds)) * pause,
		do: func(ctx context.Context, w *world) error {
			for _, cloud := range chaosClouds {
				if err := w.annotate(ctx, cloud, "vni", fmt.Sprint(vni), lab.GatewaySwitchPort(tenant), lab.InterfaceSwitchPort(tenant, "net")); err != nil {
					return err
				}
				if err := sleep(ctx, pause); err != nil {
					return err
				}
			}
			return nil
		},
		plans: func() { p.vni[tenant] = vni },
	}
	for _, cloud := range chaosClouds {
		e.needs = append(e.needs, "nb:"+cloud)
	}
	return e
}

// annotate writes a word of the annotation on ports, in one transaction.
func (w *world) annotate(ctx context.Context, cloud, word, value string, ports ...string) error {
	var args []string
	for _, port := range ports {
		args = append(append(args, "--"), setting(port, word, value)...)
	}
	_, err := w.NB(ctx, cloud, args[1:]...)
	return err
}

// spoil writes garbage into an annotation, and puts it right after a while.
func (p *planner) spoil() event {
	tenant, cloud := pick(p, "red", "blue"), pick(p, chaosClouds...)
	port := pick(p, lab.GatewaySwitchPort(tenant), lab.InterfaceSwitchPort(tenant, "net"))
	bad := pick(p, [2]string{"vni", "abc"}, [2]string{"vni", "0"}, [2]string{"vni", "16777216"}, [2]string{"vni", ""}, [2]string{"as", "-1"}, [2]string{"as", "x"})
	good, pause := fmt.Sprint(p.vni[tenant]), p.upTo(3*time.Second)
	if bad[0] == "as" {
		good = fmt.Sprint(lab.FabricAS)
	}
	e := edit(cloud, fmt.Sprintf("%s of %s is %q for %d ms", bad[0], port, bad[1], pause.Milliseconds()), func(ctx context.Context, w *world) error {
		if err := w.annotate(ctx, cloud, bad[0], bad[1], port); err != nil {
			return err
		}
		return sleepThen(ctx, pause, func() error { return w.annotate(ctx, cloud, bad[0], good, port) })
	})
	e.kind, e.loses, e.lasts = "bad annotation", all, pause
	e.touches = func(q *pair) bool { return q.tenant == tenant && (q.from.cloud == cloud || q.to.cloud == cloud) }
	return e
}

// A port that comes or goes makes the userspace datapath stand still for a moment.
func (p *planner) port(e event, nodes ...string) event {
	e.loses = few
	var touches []func(*pair) bool
	for _, n := range nodes {
		e.needs = append(e.needs, "ovsdb:"+n)
		touches = append(touches, p.passes(n))
	}
	e.touches = func(q *pair) bool {
		return slices.ContainsFunc(touches, func(touch func(*pair) bool) bool { return touch(q) })
	}
	return e
}

// most of what comes and goes.
const (
	mostGuests   = 6
	mostExtra    = 5
	mostNetworks = 4
)

func chassisOf(cloud string) []string {
	return slices.DeleteFunc(slices.Clone(chaosNodes), func(n string) bool { return !strings.HasPrefix(n, cloud) })
}

func (p *planner) addGuest() event {
	if len(p.guests) >= mostGuests {
		return p.delGuest()
	}
	k := p.next()
	cloud := pick(p, "a", "a", "b", "c")
	g := &guest{name: fmt.Sprintf("%s-x%d", cloud, k), cloud: cloud, chassis: pick(p, chassisOf(cloud)...), tenant: pick(p, "red", "blue"), network: "net"}
	subnet := map[string]int{"a": 10, "b": 20, "c": 40}[cloud]
	for _, t := range p.extra {
		if t.cloud == cloud && p.random.IntN(2) == 0 {
			g.tenant, g.network = t.name, t.networks[0]
			subnet = networkNumber(g.network)
		}
	}
	vm := lab.VM{
		Name: g.name, Chassis: g.chassis, Tenant: g.tenant, Network: g.network,
		Addr4: netip.MustParseAddr(fmt.Sprintf("10.%d.0.%d", subnet, 100+k%100)), Addr6: netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", subnet, 100+k%100)),
	}
	e := edit(cloud, fmt.Sprintf("VM %s of %s comes to %s", g.name, g.tenant, g.chassis), func(ctx context.Context, w *world) error {
		return w.AddVM(ctx, cloud, vm)
	})
	e.plans = func() { p.guests = append(p.guests, g) }
	return p.port(e, g.chassis)
}

func (p *planner) delGuest() event {
	if len(p.guests) == 0 {
		return p.addGuest()
	}
	g := pick(p, p.guests...)
	e := edit(g.cloud, fmt.Sprintf("VM %s of %s goes from %s", g.name, g.tenant, g.chassis), func(ctx context.Context, w *world) error {
		return w.DelVM(ctx, g.name)
	})
	e.plans = func() { p.guests = slices.DeleteFunc(p.guests, func(o *guest) bool { return o == g }) }
	return p.port(e, g.chassis)
}

func (p *planner) moveGuest() event {
	i := slices.IndexFunc(p.guests, func(g *guest) bool { return g.cloud == "a" })
	if i < 0 {
		return p.addGuest()
	}
	g := p.guests[i]
	from, to := g.chassis, pick(p, slices.DeleteFunc(chassisOf("a"), func(n string) bool { return n == g.chassis })...)
	e := edit("a", fmt.Sprintf("VM %s moves from %s to %s", g.name, from, to), func(ctx context.Context, w *world) error {
		return w.MoveVM(ctx, g.name, to)
	})
	e.plans = func() { g.chassis = to }
	return p.port(e, from, to)
}

// Of what follows no pair is a part. A port of a router is no port of Open vSwitch.

func (p *planner) addTenant() event {
	if len(p.extra) >= mostExtra {
		return p.delTenant()
	}
	k, cloud := p.next(), pick(p, chaosClouds...)
	t := &extraTenant{name: fmt.Sprintf("x%d", k), cloud: cloud, vni: 3000 + k}
	// At times it is a part of one that another cloud has.
	for _, o := range p.extra {
		if p.random.IntN(2) == 0 && !slices.ContainsFunc(p.extra, func(e *extraTenant) bool { return e.cloud == cloud && e.vni == o.vni }) {
			t.vni = o.vni
		}
	}
	network := p.network()
	t.networks = []string{network.Name}
	spec := lab.Tenant{Name: t.name, VNI: uint32(t.vni), AS: lab.FabricAS, Provider: "public", Networks: []lab.Network{network}}
	e := edit(cloud, fmt.Sprintf("router of %s with VNI %d and network %s comes", t.name, t.vni, network.Name), func(ctx context.Context, w *world) error {
		return w.AddTenant(ctx, cloud, spec, 100+k)
	})
	e.plans = func() { p.extra = append(p.extra, t) }
	return e
}

// network is one that no tenant has.
func (p *planner) network() lab.Network {
	k := 100 + p.next()%150
	return lab.Network{
		Name: fmt.Sprintf("n%d", k), Subnet4: netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/24", k)), Subnet6: netip.MustParsePrefix(fmt.Sprintf("fd00:%d::/64", k)),
	}
}

func networkNumber(name string) (k int) {
	_, _ = fmt.Sscanf(name, "n%d", &k)
	return k
}

// without picks an extra tenant that has no guests.
func (p *planner) without() *extraTenant {
	var free []*extraTenant
	for _, t := range p.extra {
		if !slices.ContainsFunc(p.guests, func(g *guest) bool { return g.tenant == t.name }) {
			free = append(free, t)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return pick(p, free...)
}

func (p *planner) delTenant() event {
	t := p.without()
	if t == nil {
		return p.delGuest()
	}
	e := edit(t.cloud, fmt.Sprintf("router of %s goes", t.name), func(ctx context.Context, w *world) error {
		return w.DelTenant(ctx, t.cloud, t.name)
	})
	e.plans = func() { p.extra = slices.DeleteFunc(p.extra, func(o *extraTenant) bool { return o == t }) }
	return e
}

func (p *planner) addNetwork() event {
	if len(p.extra) == 0 {
		return p.addTenant()
	}
	t := pick(p, p.extra...)
	if len(t.networks) >= mostNetworks {
		return p.delNetwork()
	}
	n, vni := p.network(), t.vni
	e := edit(t.cloud, fmt.Sprintf("network %s of %s comes", n.Name, t.name), func(ctx context.Context, w *world) error {
		if err := w.AddNetwork(ctx, t.cloud, t.name, n); err != nil {
			return err
		}
		return w.annotate(ctx, t.cloud, "vni", fmt.Sprint(vni), lab.InterfaceSwitchPort(t.name, n.Name))
	})
	e.plans = func() { t.networks = append(t.networks, n.Name) }
	return e
}

func (p *planner) delNetwork() event {
	i := slices.IndexFunc(p.extra, func(t *extraTenant) bool { return len(t.networks) > 1 })
	if i < 0 {
		return p.changeVNI()
	}
	t := p.extra[i]
	last := t.networks[len(t.networks)-1] // guests are in the first
	e := edit(t.cloud, fmt.Sprintf("network %s of %s goes", last, t.name), func(ctx context.Context, w *world) error {
		return w.DelNetwork(ctx, t.cloud, t.name, last)
	})
	e.plans = func() { t.networks = t.networks[:len(t.networks)-1] }
	return e
}

// renumber gives an extra tenant another VNI.
func (p *planner) renumber() event {
	if len(p.extra) == 0 {
		return p.addTenant()
	}
	t := pick(p, p.extra...)
	vni := 3000 + p.next()
	ports := []string{lab.GatewaySwitchPort(t.name)}
	for _, n := range t.networks {
		ports = append(ports, lab.InterfaceSwitchPort(t.name, n))
	}
	e := edit(t.cloud, fmt.Sprintf("VNI of %s becomes %d", t.name, vni), func(ctx context.Context, w *world) error {
		return w.annotate(ctx, t.cloud, "vni", fmt.Sprint(vni), ports...)
	})
	e.plans = func() { t.vni = vni }
	return e
}
