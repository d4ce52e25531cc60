package tapbalancing

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// world makes rows of a small cloud, in which names, taps, addresses and keys collide often.
type world struct {
	*rand.Rand
	// south: load balancers are those of Southbound.
	south bool
	// odd: things may be wrong.
	odd bool
	// subject are the kinds of rows that change: all of a kind are rarely in the way of what
	// others do.
	subject []kind
}

// kind makes rows of one sort, always the same ones by identifier.
type kind func(world) []ovn.Row

var kinds = []kind{world.node, world.switches, world.routers, world.vms, world.acls, world.balancers}

func newWorld(r *rand.Rand) world {
	w := world{Rand: r, south: r.IntN(4) == 0, odd: r.IntN(4) == 0}
	for w.subject = some(w, kinds...); len(w.subject) == 0; {
		w.subject = some(w, kinds...)
	}
	return w
}

func pick[T any](r world, of ...T) T { return of[r.IntN(len(of))] }

// mostly is the first, and one time in eight another.
func mostly[T any](r world, first T, others ...T) T {
	if !r.odd || r.IntN(8) > 0 {
		return first
	}
	return pick(r, others...)
}

// some are those of a list that chance takes.
func some[T any](r world, of ...T) (out []T) {
	for _, one := range of {
		if r.IntN(3) == 0 {
			out = append(out, one)
		}
	}
	return out
}

func (r world) store() *ovn.Rows {
	rows := ovn.NewRows()
	rows.FollowVMs(true)
	rows.FollowACLs(true)
	rows.FollowClients(true)
	rows.BalanceBySouthbound(r.south)
	return rows
}

func (r world) load(rows map[ovn.UUID]ovn.Row) *ovn.Rows {
	out := r.store()
	var batch []ovn.Change
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		batch = append(batch, ovn.Set(rows[id]))
	}
	out.Apply(batch)
	return out
}

// all are the rows of all kinds.
func (r world) all() (out []ovn.Row) {
	for _, k := range kinds {
		out = append(out, k(r)...)
	}
	return out
}

// changes are so many, each of a row by itself, and often of one of its columns alone.
func (r world) changes(n int, now map[ovn.UUID]ovn.Row) (out []ovn.Change) {
	r.odd = true
	for range n {
		list := pick(r, r.subject...)(r)
		if len(list) == 0 {
			continue
		}
		row := pick(r, list...)
		old, there := now[row.Key()]
		switch {
		case r.IntN(14) == 0:
			out = append(out, ovn.Delete(tableOf(row), row.Key()))
		case there && r.IntN(3) > 0:
			out = append(out, ovn.Set(r.mixed(old, row)))
		default:
			out = append(out, ovn.Set(row))
		}
	}
	return out
}

// mixed is a row with one column of another, which is another than its own if any is.
func (r world) mixed(row, other ovn.Row) ovn.Row {
	out := reflect.New(reflect.TypeOf(row)).Elem()
	out.Set(reflect.ValueOf(row))
	to, from := out, reflect.ValueOf(other)
	for to.Kind() == reflect.Struct {
		var differ []int
		for i := range to.NumField() {
			if !reflect.DeepEqual(to.Field(i).Interface(), from.Field(i).Interface()) {
				differ = append(differ, i)
			}
		}
		if len(differ) == 0 {
			return row
		}
		n := pick(r, differ...)
		to, from = to.Field(n), from.Field(n)
	}
	to.Set(from)
	if b, ok := out.Interface().(ovn.LoadBalancer); ok {
		return r.probed(b)
	}
	return out.Interface().(ovn.Row)
}

// probed is a row of Southbound with what is made of its VIPs.
func (r world) probed(b ovn.LoadBalancer) ovn.LoadBalancer {
	if b.Probed = nil; !r.south {
		return b
	}
	for _, list := range b.VIPs {
		for word := range strings.SplitSeq(list, ",") {
			if at, err := netip.ParseAddrPort(word); err == nil && !slices.Contains(b.Probed, at.Addr()) {
				b.Probed = append(b.Probed, at.Addr())
			}
		}
	}
	slices.SortFunc(b.Probed, netip.Addr.Compare)
	return b
}

func tableOf(row ovn.Row) ovn.Table {
	tables := map[string]ovn.Table{"PortBinding": ovn.TablePortBinding, "DatapathBinding": ovn.TableDatapathBinding, "Chassis": ovn.TableChassis,
		"Bridge": ovn.TableBridge, "Port": ovn.TablePort, "Interface": ovn.TableInterface, "OpenvSwitch": ovn.TableOpenvSwitch,
		"LogicalSwitch": ovn.TableLogicalSwitch, "LogicalSwitchPort": ovn.TableLogicalSwitchPort, "ACL": ovn.TableACL, "PortGroup": ovn.TablePortGroup,
		"AddressSet": ovn.TableAddressSet, "NBGlobal": ovn.TableNBGlobal, "LoadBalancer": ovn.TableLoadBalancer, "LoadBalancerGroup": ovn.TableLoadBalancerGroup,
		"HealthCheck": ovn.TableHealthCheck, "ServiceMonitor": ovn.TableServiceMonitor, "TemplateVar": ovn.TableTemplateVar,
		"DatapathGroup": ovn.TableDatapathGroup, "SBGlobal": ovn.TableSBGlobal}
	return tables[strings.TrimPrefix(fmt.Sprintf("%T", row), "ovn.")]
}

func (r world) devices() map[string]intent.TapDevice {
	out := map[string]intent.TapDevice{}
	for n := range 6 {
		name := fmt.Sprint("tap", n)
		switch r.IntN(16) {
		case 0:
			out[name] = intent.TapDevice{Reason: pick(r, reason.TapMissing, reason.TapUnknown, reason.TapNetdev), Detail: "why"}
		case 1:
			out[name] = intent.TapDevice{Name: "tap0", IfIndex: 10}
		case 2:
		default:
			out[name] = intent.TapDevice{Name: name, IfIndex: uint32(10 + n)}
		}
	}
	return out
}

func (r world) node() []ovn.Row {
	out := []ovn.Row{ovn.Chassis{UUID: here, Name: mostly(r, "a1", "a2")}, ovn.Chassis{UUID: "chassis-there", Name: "a3"},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": mostly(r, "a1", "a2"), "ovn-bridge": mostly(r, "", "br-other")}}}
	if r.south {
		out = append(out, ovn.SBGlobal{UUID: "sb-global", TableSize: pick(r, "", "4093", "x")})
	}
	return out
}

var networks = []string{"red", "blue", "green"}

func (r world) switches() (out []ovn.Row) {
	for n, name := range networks {
		external := map[string]string{"logical-switch": mostly(r, "nb-"+name, "nb-red"), "name": pick(r, name, name, "neutron-x", "")}
		out = append(out, ovn.DatapathBinding{UUID: ovn.UUID(name), TunnelKey: uint32(mostly(r, n+1, 1)), ExternalIDs: external},
			ovn.LogicalSwitch{UUID: ovn.UUID("nb-" + name), LoadBalancers: some(r, ovn.UUID("lb-0"), "lb-1", "lb-2"), LoadBalancerGroups: pick(r, nil, nil, []ovn.UUID{"group"}),
				ACLs: some(r, ovn.UUID("acl-0"), "acl-1")})
		for k := range 2 { // hosts, elsewhere
			host := fmt.Sprintf("host-%s-%d", name, k)
			out = append(out, ovn.PortBinding{UUID: ovn.UUID("pb-" + host), LogicalPort: mostly(r, host, "host-red-0", "r0-red"), Datapath: ovn.UUID(mostly(r, name, "red")),
				Type: pick(r, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVirtual), Chassis: pick(r, ovn.UUID(""), "chassis-there"),
				MAC: []string{fmt.Sprintf("fa:16:3e:00:%02d:%02d 10.%d.0.%d", n, k+20, mostly(r, n, 0), mostly(r, 20+k, 20, 99))}})
		}
	}
	return out
}

// routers puts two with a port on each network, of which one may be a gateway.
func (r world) routers() (out []ovn.Row) {
	for i, router := range []string{"r0", "r1"} {
		for n, name := range append([]string{"ext"}, networks...) {
			to, from := router+"-"+name, name+"-"+router
			if i == 1 && n > 2 {
				continue
			}
			kind := func() string { return mostly(r, ovn.TypePatch, ovn.TypeL3Gateway, ovn.TypeVIF) }
			mac := fmt.Sprintf("fa:16:3e:01:%02d:%02d 10.%d.0.1/24", i, n, pick(r, n-1, n-1, n-1, 8)&15)
			out = append(out, ovn.PortBinding{UUID: ovn.UUID("pb-" + to), LogicalPort: mostly(r, to, "r0-red"), Type: kind(), Datapath: ovn.UUID(mostly(r, router, "r0", "blue")),
				MAC: mostly(r, []string{mac}, nil), Options: map[string]string{"peer": mostly(r, from, "red-r0")}},
				ovn.PortBinding{UUID: ovn.UUID("pb-" + from), LogicalPort: mostly(r, from, "red-r0"), Type: kind(), Datapath: ovn.UUID(mostly(r, name, "red")),
					MAC: []string{"router"}, Options: map[string]string{"peer": mostly(r, to, "r0-red")}})
		}
		out = append(out, ovn.PortBinding{UUID: ovn.UUID("pb-cr-" + router), LogicalPort: "cr-" + router, Type: ovn.TypeChassisRedirect, Datapath: ovn.UUID(router),
			Options: map[string]string{"distributed-port": router + "-" + pick(r, "ext", "red", "green")}})
	}
	return out
}

func (r world) vms() (out []ovn.Row) {
	var plugged []ovn.UUID
	for n := range 6 {
		name, id := fmt.Sprint("vm", n), func(kind string) ovn.UUID { return ovn.UUID(fmt.Sprint(kind, "-", n)) }
		plugged = append(plugged, id("po"))
		p := ovn.PortBinding{UUID: id("pb-vm"), LogicalPort: mostly(r, name, "vm0"), Datapath: ovn.UUID(mostly(r, networks[n%3], networks...)),
			Chassis: mostly(r, here, "chassis-there", ""), AdditionalChassis: pick(r, nil, nil, nil, []ovn.UUID{here}),
			Type: mostly(r, ovn.TypeVIF, ovn.TypeExternal, ovn.TypeLocalport),
			MAC:  []string{fmt.Sprintf("fa:16:3e:02:00:%02d 10.%d.0.%d", n, mostly(r, n%3, 0), 50+n)}, ExternalIDs: pick(r, nil, map[string]string{"any": "thing"})}
		if r.IntN(4) == 0 {
			p.ParentPort, p.Tag = mostly(r, "vm0", "vm1"), pick(r, 1, 1, 2, 0)
		}
		tap, one := fmt.Sprint("tap", n), []ovn.UUID{id("if")}
		out = append(out, p, ovn.LogicalSwitchPort{UUID: id("lsp"), Name: mostly(r, name, "vm0")},
			ovn.Interface{UUID: id("if"), Name: mostly(r, tap, "tap0"), IfaceID: mostly(r, name, "vm0", ""), IfIndex: uint32(mostly(r, 0, 10+n, 99))},
			ovn.Port{UUID: id("po"), Name: tap, Interfaces: mostly(r, one, nil)})
	}
	return append(out, ovn.Bridge{UUID: "br-int", Name: mostly(r, "br-int", "br-x"), Ports: mostly(r, plugged, plugged[:4], plugged[2:])},
		ovn.Bridge{UUID: "br-other", Name: "br-other", Ports: pick(r, nil, plugged[5:], plugged[:1])})
}

func (r world) acls() (out []ovn.Row) {
	if r.south {
		return nil
	}
	out = append(out, ovn.NBGlobal{UUID: "global", TableSize: pick(r, "", "", "", "4093", "x"), DefaultDrop: r.IntN(6) == 0})
	for n := range 3 {
		id := ovn.UUID(fmt.Sprint("acl-", n))
		rule := ovn.ACL{UUID: id, Priority: r.IntN(3), Tier: mostly(r, 0, 1), AfterLB: mostly(r, false, true), Action: pick(r, "allow-related", "drop", "drop", "drop", "drop", "allow-stateless", "pass"),
			Match: pick(r, "ip4", "ip4.src == 10.0.0.0/8", "ip4.dst == 10.9.0.0/16", "ip4.dst == $near", "ip4.dst == $near", "ip4.dst == $near", "tcp.dst == {80, 443}", "tcp.dst == 80", "ip4.src == $far", "inport == @pg_0 && ip4.dst == 10.9.0.0/16", "inport == @pg_1 && ip4.dst == 10.9.0.0/16", "inport == @pg_2 && tcp.dst == 80",
				"inport == @pg_1 && ip4.dst == $near", `inport == "vm1" && tcp.dst == 80`, "?")}
		lsps := some(r, ovn.UUID("lsp-0"), "lsp-1", "lsp-2", "lsp-3", "lsp-4", "lsp-5", "lsp-0", "lsp-1", "lsp-2")
		slices.Sort(lsps)
		lsps = slices.Compact(lsps)
		r.Shuffle(len(lsps), func(i, j int) { lsps[i], lsps[j] = lsps[j], lsps[i] })
		rule.FromPort = r.IntN(4) > 0
		out = append(out, rule,
			ovn.PortGroup{UUID: ovn.UUID(fmt.Sprint("pg-", n)), Name: fmt.Sprint("pg_", pick(r, n, n, (n+1)%3)), Ports: lsps, ACLs: pick(r, []ovn.UUID{id}, []ovn.UUID{id, "acl-0"}, []ovn.UUID{"acl-1", "acl-2"})})
	}
	for _, name := range []string{"near", "far"} {
		out = append(out, ovn.AddressSet{UUID: ovn.UUID("set-" + name), Name: pick(r, name, name, "near", "away"), Addresses: pick(r, nil, []string{"10.9.0.0/16"}, []string{"10.0.0.0/8"}, []string{"10.0.0.20", "10.0.0.99"}, []string{"10.0.0.0/9", "10.128.0.0/9"})})
	}
	return out
}

var backends = []string{"10.0.0.20:8080", "10.0.0.21:8080", "10.1.0.20:8080", "10.2.0.50:80"}

func (r world) balancers() (out []ovn.Row) {
	for n := range 4 {
		vips, hosts, mapped := map[string]string{}, some(r, append(backends, backends[0], mostly(r, backends[1], "10.7.0.1:80"))...), map[netip.Addr]string{}
		for k := range 2 {
			vips[fmt.Sprintf("10.%d.0.%d:80", pick(r, 9, 9, 0), pick(r, n, k, 99))] = strings.Join(hosts, ",")
		}
		for _, h := range hosts {
			mapped[netip.MustParseAddrPort(h).Addr()] = pick(r, "host-red-0", "host-red-1", "host-blue-0", "vm0")
		}
		options := map[string]string{mostly(r, "any", "sluice-path", "sluice-m", "reject"): pick(r, "ovn", "true", "4093", "1021", "x")}
		if r.IntN(4) == 0 {
			vips, options = map[string]string{"^at:80": "^to:8080"}, map[string]string{"template": "true"}
		}
		b := ovn.LoadBalancer{UUID: ovn.UUID(fmt.Sprint("lb-", n)), Name: pick(r, fmt.Sprint("lb", n), "lb", ""), Protocol: pick(r, "", "", "", "udp"), VIPs: vips, Options: options,
			Ports: mapped, HealthChecks: some(r, ovn.UUID("check-0"), "check-1")}
		if r.south {
			b.At, b.Ports, b.HealthChecks = some(r, ovn.UUID("red"), "red", "blue", "green", "green", "dpg-0", "dpg-1"), nil, nil
		}
		out = append(out, r.probed(b))
	}
	for n := range 2 {
		out = append(out, ovn.HealthCheck{UUID: ovn.UUID(fmt.Sprint("check-", n)), VIP: pick(r, "10.9.0.0:80", "10.9.0.1:80", "10.0.0.99:80", "10.9.0.2:80")},
			ovn.DatapathGroup{UUID: ovn.UUID(fmt.Sprint("dpg-", n)), Datapaths: some(r, ovn.UUID("red"), "blue", "green")})
	}
	for n, h := range backends {
		at := netip.MustParseAddrPort(h)
		out = append(out, ovn.ServiceMonitor{UUID: ovn.UUID(fmt.Sprint("probe-", n)), LogicalPort: pick(r, "host-red-0", "host-red-1", "vm0", "far", "far"), IP: pick(r, at.Addr().String(), "10.0.0.20"),
			Protocol: pick(r, "tcp", "tcp", "tcp", "udp"), Port: pick(r, at.Port(), 8080), Status: pick(r, "offline", "offline", "online", "")})
	}
	if r.south { // it is known by which network its port is in whose probe it is
		out = append(out, ovn.PortBinding{UUID: "pb-far", LogicalPort: "far", Type: ovn.TypeLocalport, Datapath: pick(r, ovn.UUID("red"), "blue", "ext")})
	}
	return append(out, ovn.LoadBalancerGroup{UUID: "group", LoadBalancers: some(r, ovn.UUID("lb-2"), "lb-3")},
		ovn.TemplateVar{UUID: "vars", Chassis: mostly(r, "a1", "a2"), Variables: map[string]string{"at": pick(r, "10.9.0.7", "10.9.0.8"), "to": pick(r, "10.0.0.20", "10.1.0.20", "10.7.0.1")}})
}
