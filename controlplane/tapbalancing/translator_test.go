package tapbalancing

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

const here = ovn.UUID("chassis-here")

var synced = ovn.InSync{SB: true, VSwitch: true, NB: true}

// cloud is a set of rows to change and to load into a store, and the devices of the node.
type cloud struct {
	rows    map[ovn.UUID]ovn.Row
	devices map[string]intent.TapDevice
}

func (c cloud) put(rows ...ovn.Row) {
	for _, r := range rows {
		c.rows[r.Key()] = r
	}
}

func (c cloud) load() *ovn.Rows {
	rows := ovn.NewRows()
	rows.FollowVMs(true)
	rows.FollowACLs(true)
	rows.FollowClients(true)
	var batch []ovn.Change
	for _, id := range slices.Sorted(maps.Keys(c.rows)) {
		batch = append(batch, ovn.Set(c.rows[id]))
	}
	rows.Apply(batch)
	return rows
}

// port adds a port of a switch, elsewhere if chassis is empty.
func (c cloud) port(name, datapath string, chassis ovn.UUID, mac ...string) {
	c.put(ovn.PortBinding{UUID: ovn.UUID("pb-" + name), LogicalPort: name, Datapath: ovn.UUID(datapath), Chassis: chassis, MAC: mac},
		ovn.LogicalSwitchPort{UUID: ovn.UUID("lsp-" + name), Name: name})
}

// plug gives a port a tap.
func (c cloud) plug(port string, index uint32) {
	name := "tap" + port
	c.put(ovn.Interface{UUID: ovn.UUID("if-" + port), Name: name, IfaceID: port, IfIndex: index},
		ovn.Port{UUID: ovn.UUID("po-" + port), Name: name, Interfaces: []ovn.UUID{ovn.UUID("if-" + port)}})
	b, _ := c.rows["br-int"].(ovn.Bridge)
	b.UUID, b.Name, b.Ports = "br-int", "br-int", append(slices.Clone(b.Ports), ovn.UUID("po-"+port))
	c.put(b)
	c.devices[name] = intent.TapDevice{Name: name, IfIndex: index}
}

// connect adds the two ends of a router's port on a switch.
func (c cloud) connect(router, network, mac string) {
	to, from := router+"-"+network, network+"-"+router
	c.put(ovn.PortBinding{UUID: ovn.UUID("pb-" + to), LogicalPort: to, Type: ovn.TypePatch, Datapath: ovn.UUID(router), MAC: []string{mac}, Options: map[string]string{"peer": from}},
		ovn.PortBinding{UUID: ovn.UUID("pb-" + from), LogicalPort: from, Type: ovn.TypePatch, Datapath: ovn.UUID(network), MAC: []string{"router"}, Options: map[string]string{"peer": to}})
}

func (c cloud) balancer(name string, vips map[string]string, options map[string]string) {
	c.put(ovn.LoadBalancer{UUID: ovn.UUID("lb-" + name), Name: name, VIPs: vips, Options: options})
	sw, _ := c.rows["nb-red"].(ovn.LogicalSwitch)
	sw.LoadBalancers = append(slices.Clone(sw.LoadBalancers), ovn.UUID("lb-"+name))
	c.put(sw)
}

// sample is a VM on a switch with a load balancer, one of whose backends is behind
// a router.
func sample() cloud {
	c := cloud{map[ovn.UUID]ovn.Row{}, map[string]intent.TapDevice{}}
	c.put(ovn.Chassis{UUID: here, Name: "a1"}, ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}}, ovn.NBGlobal{UUID: "global"})
	for key, name := range []string{"red", "blue", "router", "ext"} {
		kind := "logical-switch"
		if name == "router" {
			kind = "logical-router"
		}
		c.put(ovn.DatapathBinding{UUID: ovn.UUID(name), TunnelKey: uint32(key + 1), ExternalIDs: map[string]string{kind: "nb-" + name, "name": name}})
	}
	c.put(ovn.LogicalSwitch{UUID: "nb-red"})
	c.port("vm", "red", here, "fa:16:3e:00:00:05 10.0.0.5 2001:db8::5")
	c.plug("vm", 7)
	c.port("be1", "red", "", "fa:16:3e:00:00:11 10.0.0.11 2001:db8::11")
	c.connect("router", "red", "fa:16:3e:00:00:01 10.0.0.1/24 2001:db8::1/64")
	c.connect("router", "blue", "fa:16:3e:00:00:02 10.1.0.1/24")
	c.connect("router", "ext", "fa:16:3e:00:00:03 192.0.2.1/24")
	c.put(ovn.PortBinding{UUID: "pb-cr", LogicalPort: "cr-router-ext", Type: ovn.TypeChassisRedirect, Datapath: "router", Options: map[string]string{"distributed-port": "router-ext"}})
	c.balancer("web", map[string]string{"10.0.0.99:80": "10.0.0.11:8080,10.1.0.12:8080"}, nil)
	return c
}

// say describes what is balanced, short enough for a table.
func say(t *Translator) string {
	var words []string
	for _, b := range t.Balanced() {
		words = append(words, fmt.Sprintf("%s %s:%s", intent.FormatEndpoint(b.VIP.Key.Addr, b.VIP.Key.Port), b.Choice.Path, b.Choice.Reason))
	}
	for _, m := range t.VMs() {
		words = append(words, fmt.Sprintf("%s %s:%s", m.Port, m.Choice.Path, m.Choice.Reason))
	}
	for _, o := range t.Objects() {
		words = append(words, fmt.Sprintf("%s %s", o.Key, o.Reason))
	}
	return strings.Join(words, "; ")
}

func neighbors(t *Translator) string {
	var words []string
	for k, n := range wanted.Rows(t.Tables(), intent.ClientNeighbors) {
		w := fmt.Sprintf("%s %s", k.Addr, n.MAC.String()[15:])
		if n.VIP {
			w += " VIP"
		}
		if n.Answer {
			w += " told"
		}
		words = append(words, w)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func TestClients(t *testing.T) {
	const balanced = "10.0.0.99:80 ebpf:auto; vm ebpf:auto"
	rule := func(c cloud, match string) {
		c.put(ovn.ACL{UUID: "acl", FromPort: true, Priority: 1, Action: "drop", Match: match},
			ovn.PortGroup{UUID: "pg", Name: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: []ovn.UUID{"acl"}})
	}
	for name, tt := range map[string]struct {
		cfg             Config
		change          func(cloud)
		want, neighbors string
	}{
		"plain": {want: balanced, neighbors: "10.0.0.11 11, 10.0.0.99 01 VIP told, 10.1.0.12 01"},
		"IPv6": {change: func(c cloud) {
			c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"[2001:db8::99]:80": "[2001:db8::11]:80"}})
		}, want: "[2001:db8::99]:80 ebpf:auto; vm ebpf:auto", neighbors: "2001:db8::11 11, 2001:db8::99 01 VIP told"},
		"a VIP of another network": {change: func(c cloud) {
			c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"10.9.0.1:80": "10.0.0.11:80"}})
		}, want: "10.9.0.1:80 ebpf:auto; vm ebpf:auto", neighbors: "10.0.0.11 11, 10.9.0.1 01 VIP"},
		"a VIP that a port has": {change: func(c cloud) { c.port("vip", "red", "", "fa:16:3e:00:00:63 10.0.0.99") }, want: balanced, neighbors: "10.0.0.11 11, 10.0.0.99 63 VIP, 10.1.0.12 01"},
		"no router":             {change: func(c cloud) { delete(c.rows, "pb-router-red") }, want: "10.0.0.99:80 ovn:backend-outside; vm ebpf:auto", neighbors: "10.0.0.11 11, 10.0.0.99 00 VIP"},
		"a backend behind the gateway": {change: func(c cloud) {
			c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"10.0.0.99:80": "192.0.2.7:80"}})
		}, want: "10.0.0.99:80 ovn:backend-outside; vm ebpf:auto", neighbors: "10.0.0.99 01 VIP told"},
		"a backend that no port has": {change: func(c cloud) { delete(c.rows, "pb-be1") }, want: balanced, neighbors: "10.0.0.11 01, 10.0.0.99 01 VIP told, 10.1.0.12 01"},
		"a backend whose port has no addresses": {change: func(c cloud) {
			c.put(ovn.PortBinding{UUID: "pb-be1", LogicalPort: "be1", Datapath: "red", Type: ovn.TypeVirtual})
		}, want: balanced, neighbors: "10.0.0.11 01, 10.0.0.99 01 VIP told, 10.1.0.12 01"},
		"a backend that no port has, IPv6": {change: func(c cloud) {
			c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"[2001:db8::99]:80": "[2001:db8::12]:80"}})
		}, want: "[2001:db8::99]:80 ebpf:auto; vm ebpf:auto", neighbors: "2001:db8::12 01, 2001:db8::99 01 VIP told"},
		"one of two VIPs of an address": {change: func(c cloud) {
			c.balancer("api", map[string]string{"10.0.0.99:443": "10.0.0.11:443"}, map[string]string{"sluice-path": "ovn"})
		}, want: "10.0.0.99:80 ebpf:auto; 10.0.0.99:443 ovn:configured; vm ebpf:auto", neighbors: "10.0.0.11 11, 10.0.0.99 01 VIP told, 10.1.0.12 01"},
		"twice": {change: func(c cloud) {
			c.balancer("zweb", map[string]string{"10.0.0.99:80": "10.0.0.11:443"}, nil)
		}, want: balanced + "; zweb duplicate-address", neighbors: "10.0.0.11 11, 10.0.0.99 01 VIP told, 10.1.0.12 01"},
		"no VIP":            {change: func(c cloud) { c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web"}) }},
		"a bad VIP":         {change: func(c cloud) { c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"x": "y"}}) }, want: "web bad-load-balancer"},
		"elsewhere":         {change: func(c cloud) { c.port("vm", "red", "", "fa:16:3e:00:00:05 10.0.0.5") }},
		"a row to come":     {change: func(c cloud) { delete(c.rows, "lb-web") }},
		"by its source":     {change: func(c cloud) { rule(c, "inport == @pg && ip4 && ip4.src == 10.0.0.5 && tcp") }, want: balanced, neighbors: "*"},
		"by destination":    {change: func(c cloud) { rule(c, "inport == @pg && ip4.dst == 10.0.0.0/24") }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"of all of them":    {change: func(c cloud) { rule(c, "inport == @pg && ip4.dst == 10.0.0.0/8") }, want: balanced, neighbors: "*"},
		"of none of them":   {change: func(c cloud) { rule(c, "inport == @pg && ip4.dst == 10.0.0.0/8 && tcp.dst == 25") }, want: balanced, neighbors: "*"},
		"of another port":   {change: func(c cloud) { rule(c, `inport == "other" && ip4.dst == 10.0.0.0/24`) }, want: balanced, neighbors: "*"},
		"of another source": {change: func(c cloud) { rule(c, `ip4.src == 10.0.0.6 && ip4.dst == 10.0.0.0/24`) }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"of a VIP of OVN": {change: func(c cloud) {
			c.balancer("api", map[string]string{"10.0.0.99:443": "10.0.0.11:443"}, map[string]string{"sluice-path": "ovn"})
			rule(c, "ip4 && tcp.dst == 443")
		}, want: "10.0.0.99:80 ebpf:auto; 10.0.0.99:443 ovn:configured; vm ebpf:auto", neighbors: "*"},
		"by an address set": {change: func(c cloud) {
			c.put(ovn.AddressSet{UUID: "set", Name: "near", Addresses: []string{"10.0.0.11"}})
			rule(c, "ip4.dst == $near")
		}, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"by default": {change: func(c cloud) {
			c.put(ovn.NBGlobal{UUID: "global", DefaultDrop: true})
			c.put(ovn.ACL{UUID: "acl", FromPort: true, Action: "allow", Match: "ip4.dst == 10.0.0.99"}, ovn.PortGroup{UUID: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: []ovn.UUID{"acl"}})
		}, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"by its port": {change: func(c cloud) { rule(c, "inport == @pg && !(ip4 && tcp.dst == 80)") }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"after balancing": {change: func(c cloud) {
			c.put(ovn.ACL{UUID: "acl", FromPort: true, Match: "ip4.dst == 10.0.0.0/24", Action: "drop", AfterLB: true}, ovn.PortGroup{UUID: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: []ovn.UUID{"acl"}})
		}, want: balanced, neighbors: "*"},
		"what is not read":   {change: func(c cloud) { rule(c, "a new thing") }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"ACLs to come":       {change: func(c cloud) { delete(c.rows, "lsp-vm") }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl-unknown; vm acl-unknown", neighbors: "*"},
		"they do not matter": {cfg: Config{TrustUnknown: true}, change: func(c cloud) { delete(c.rows, "lsp-vm") }, want: balanced, neighbors: "*"},
		"any address": {change: func(c cloud) {
			c.port("vm", "red", here, "unknown")
			rule(c, "ip4.src == 10.0.0.5 && ip4.dst == 10.0.0.0/24")
		}, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"another address, too": {change: func(c cloud) {
			c.port("vm", "red", here, "fa:16:3e:00:00:05 10.0.0.5", "unknown")
			rule(c, "eth.src == fa:16:3e:00:00:77 && ip4.dst == 10.0.0.0/24")
		}, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"another MAC address": {change: func(c cloud) { rule(c, "eth.src == fa:16:3e:00:00:77 && ip4.dst == 10.0.0.0/24") }, want: "10.0.0.99:80 ebpf:auto; vm ovn:acl", neighbors: "*"},
		"a bad size of all": {change: func(c cloud) {
			c.put(ovn.NBGlobal{UUID: "global", TableSize: "1000"})
		}, want: balanced + "; NB_Global bad-load-balancer", neighbors: "*"},
		"a bad option": {change: func(c cloud) {
			c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"10.0.0.99:80": "10.0.0.11:8080"}, Options: map[string]string{"sluice-weights": "x"}})
		}, want: "10.0.0.99:80 ovn:bad-load-balancer; vm ebpf:auto; web bad-load-balancer", neighbors: "10.0.0.11 11, 10.0.0.99 01 VIP told"},
		"a tag of a subport": {change: func(c cloud) {
			p := c.rows["pb-vm"].(ovn.PortBinding)
			p.ParentPort, p.Tag = "trunk", 5000
			c.put(p)
			c.port("trunk", "blue", here, "fa:16:3e:00:00:06")
		}, want: "10.0.0.99:80 ebpf:auto; vm ovn:bad-tag; vm bad-tag", neighbors: "*"},
		"no tap": {change: func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Reason: reason.TapNetdev, Detail: "why"} }, want: "10.0.0.99:80 ebpf:auto; vm ovn:tap-netdev", neighbors: "*"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			if tt.change != nil {
				tt.change(c)
			}
			tr := NewTranslator(tt.cfg, &loadbalancer.Book{})
			whole(tr, c, synced)
			if got := say(tr); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if got := neighbors(tr); got != tt.neighbors && tt.neighbors != "*" {
				t.Errorf("\n got %s\nwant %s", got, tt.neighbors)
			}
			want := map[intent.TapClientKey]intent.TapClient{}
			if !slices.Contains([]string{"elsewhere", "no tap", "a tag of a subport"}, name) {
				k := intent.TapClientKey{IfIndex: 7}
				want[k] = intent.TapClient{Key: k, Scope: intent.Switch(1), OVN: strings.Contains(tt.want, "vm ovn"), Idle: !strings.Contains(tt.want, "vm ")}
			}
			if got := wanted.Rows(tr.Tables(), intent.TapClients); !maps.Equal(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

// whole has a translator take a cloud as a whole.
func whole(t *Translator, c cloud, inSync ovn.InSync) wanted.Difference {
	t.SetDevices(c.devices)
	return t.Step(c.load(), ovn.Dirty{All: true}, inSync)
}

// What is there stays while a database is away, and a step says what has changed.
func TestSteps(t *testing.T) {
	c := sample()
	tr := NewTranslator(Config{}, &loadbalancer.Book{})
	first := whole(tr, c, synced)
	if len(wanted.Of(first, intent.TapClients).Set) != 1 || len(wanted.Of(first, intent.ClientVIPs).Set) != 1 || len(wanted.Of(first, intent.ClientNeighbors).Set) != 3 {
		t.Fatalf("%+v", first)
	}
	if d := whole(tr, cloud{}, ovn.InSync{NB: true}); !d.Empty() || !tr.Stale() || len(tr.VMs()) != 1 {
		t.Errorf("without Southbound: %+v", d)
	}
	if d := whole(NewTranslator(Config{}, &loadbalancer.Book{}), c, ovn.InSync{SB: true}); !d.Empty() {
		t.Errorf("before Northbound: %+v", d)
	}
	if d := whole(tr, c, synced); !d.Empty() || tr.Stale() {
		t.Errorf("the same again: %+v", d)
	}
	c.port("be1", "red", "", "fa:16:3e:00:00:12 10.0.0.11")
	d := whole(tr, c, ovn.InSync{SB: true}) // Northbound is away, and its rows are known
	k := intent.NeighborKey{Scope: intent.Switch(1), Addr: netip.MustParseAddr("10.0.0.11")}
	if len(wanted.Of(d, intent.ClientNeighbors).Set) != 1 || wanted.Of(d, intent.ClientNeighbors).Set[k].MAC.String() != "fa:16:3e:00:00:12" || len(wanted.Of(d, intent.ClientVIPs).Set)+len(wanted.Of(d, intent.TapClients).Set) != 0 {
		t.Errorf("another MAC address: %+v", d)
	}
	if tr.Stale() {
		t.Error("what is known waits for Northbound, and would be computed at each step")
	}
}

// While rows that a switch or a port names are still to come, what was decided stays: an Idle
// row would take the programs off the taps of all VMs for a moment.
func TestRowsToCome(t *testing.T) {
	c := sample()
	group := func(acls ...ovn.UUID) {
		c.put(ovn.PortGroup{UUID: "pg", Name: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: acls})
	}
	group()
	tr := NewTranslator(Config{}, &loadbalancer.Book{})
	whole(tr, c, synced)
	c.balancer("api", map[string]string{"10.0.0.99:443": "10.0.0.11:443"}, nil)
	api := c.rows["lb-api"]
	delete(c.rows, "lb-api")
	growing := ovn.InSync{SB: true, VSwitch: true}
	if d := whole(tr, c, growing); !d.Empty() || !tr.Stale() {
		t.Errorf("a load balancer is to come: %+v", d)
	}
	red := c.rows["red"].(ovn.DatapathBinding)
	red.TunnelKey = 9
	c.put(red)
	if d := whole(tr, c, growing); len(wanted.Of(d, intent.ClientVIPs).Set) > 0 || len(wanted.Of(d, intent.ClientVIPs).Delete) != 1 {
		t.Errorf("so it is, and the switch has another key: %+v", d)
	}
	red.TunnelKey = 1
	c.put(red)
	whole(tr, c, synced)
	c.put(api)
	whole(tr, c, synced)
	delete(c.rows, "lb-api")
	whole(tr, c, growing)
	c.put(api)
	group("acl")
	if d := whole(tr, c, growing); !d.Empty() || !tr.Stale() {
		t.Errorf("it has come, and an ACL is to come: %+v", d)
	}
	c.put(ovn.ACL{UUID: "acl", FromPort: true, Action: "drop", Match: "ip4.dst == 10.0.0.99"})
	if d := tr.Step(c.load(), ovn.Dirty{}, synced); len(wanted.Of(d, intent.TapClients).Set) != 1 || tr.Stale() || tr.VMs()[0].Choice.Reason != reason.ACLByDestination {
		t.Errorf("the ACL has come: %+v", d)
	}
	// Of a VM that is new its groups come after its port: nothing is noted until then.
	late := NewTranslator(Config{}, &loadbalancer.Book{})
	whole(late, cloud{}, synced)
	pg := c.rows["pg"]
	delete(c.rows, "pg")
	idle := func(d wanted.Difference) bool {
		for _, v := range wanted.Of(d, intent.TapClients).Set {
			return v.Idle
		}
		return false
	}
	if d := whole(late, c, growing); len(wanted.Of(d, intent.TapClients).Set) != 1 || !idle(d) || !late.Stale() || late.VMs()[0].State != status.Pending {
		t.Errorf("a port whose groups are to come: %+v", d)
	}
	c.put(pg)
	if d := whole(late, c, synced); len(wanted.Of(d, intent.TapClients).Set) != 1 || idle(d) || late.Stale() || late.VMs()[0].Choice.Reason != reason.ACLByDestination {
		t.Errorf("they have come: %+v", d)
	}
	delete(c.rows, "acl")
	if d := whole(tr, c, synced); len(wanted.Of(d, intent.TapClients).Set) > 0 || tr.Stale() || tr.VMs()[0].Choice.Reason != reason.ACLUnknown {
		t.Errorf("there is no such ACL: %+v", d)
	}
}

// An ACL that makes a difference is named, with a VIP and a backend; and more VIPs than can be
// compared are OVN's.
func TestDetails(t *testing.T) {
	c := sample()
	c.put(ovn.ACL{UUID: "acl", FromPort: true, Priority: 7, Action: "drop", Match: "ip4.dst == 10.0.0.99"},
		ovn.PortGroup{UUID: "pg", Name: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: []ovn.UUID{"acl"}})
	tr := NewTranslator(Config{}, &loadbalancer.Book{})
	whole(tr, c, synced)
	const want = `ACL 7 drop "ip4.dst == 10.0.0.99" may decide differently about VIP 10.0.0.99:80 and its backend 10.0.0.11:8080, which it would see`
	if got := tr.VMs()[0].Choice.Detail; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	var acls []ovn.UUID
	for n := range 100 {
		acls = append(acls, ovn.UUID(fmt.Sprint("acl-", n)))
		c.put(ovn.ACL{UUID: acls[n], FromPort: true, Action: "drop", Match: fmt.Sprintf("ip4.dst == 192.0.2.%d", n)})
	}
	vips := map[string]string{}
	for n := range mostWork / len(acls) {
		vips[fmt.Sprintf("10.9.0.1:%d", 100+n)] = "10.0.0.11:80"
	}
	c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: vips}, ovn.PortGroup{UUID: "pg", Name: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: acls})
	whole(tr, c, synced)
	if m := tr.VMs()[0]; m.Choice.Path != loadbalancer.PathEBPF {
		t.Errorf("%d VIPs: %+v", len(vips), m)
	}
	vips["10.9.0.2:80"] = "10.0.0.11:80"
	whole(tr, c, synced)
	if m := tr.VMs()[0]; m.Choice.Path != loadbalancer.PathOVN || !strings.Contains(m.Choice.Detail, "(1001)") {
		t.Errorf("%d VIPs: %+v", len(vips), m)
	}
}

// What ACLs said of VIPs is looked up only for the same address sets, also those of another
// store, as after another server of Southbound.
func TestJudgedAgain(t *testing.T) {
	c := sample()
	near := func(addresses ...string) {
		c.put(ovn.AddressSet{UUID: "set", Name: "near", Addresses: addresses})
	}
	near("192.0.2.1")
	c.put(ovn.ACL{UUID: "acl", FromPort: true, Action: "drop", Match: "ip4.dst == $near"},
		ovn.PortGroup{UUID: "pg", Name: "pg", Ports: []ovn.UUID{"lsp-vm"}, ACLs: []ovn.UUID{"acl"}})
	tr := NewTranslator(Config{}, &loadbalancer.Book{})
	for _, tt := range []struct {
		address string
		want    loadbalancer.Path
	}{{"192.0.2.1", loadbalancer.PathEBPF}, {"10.0.0.11", loadbalancer.PathOVN}, {"10.0.0.12", loadbalancer.PathEBPF}} {
		near(tt.address)
		whole(tr, c, synced)
		if m := tr.VMs()[0]; m.Choice.Path != tt.want {
			t.Errorf("%s: %+v", tt.address, m)
		}
	}
}
