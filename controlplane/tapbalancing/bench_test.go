package tapbalancing

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// node is a large one: 1,000 switches, ten at a router, with ten VMs and ten VIPs each
// that probe three backends; the VMs are in a security group as Neutron writes it.
func node() cloud {
	c := cloud{map[ovn.UUID]ovn.Row{}, map[string]intent.TapDevice{}}
	c.put(ovn.Chassis{UUID: here, Name: "a1"}, ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}}, ovn.NBGlobal{UUID: "global"})
	bridge := ovn.Bridge{UUID: "br-int", Name: "br-int"}
	group := ovn.PortGroup{UUID: "pg", Name: "pg", ACLs: []ovn.UUID{"acl4", "acl6", "acl-drop"}}
	for id, rule := range map[ovn.UUID]ovn.ACL{
		"acl4":     {Priority: 1002, Action: "allow-related", Match: "inport == @pg && ip4"},
		"acl6":     {Priority: 1002, Action: "allow-related", Match: "inport == @pg && ip6"},
		"acl-drop": {Priority: 1001, Action: "drop", Match: "inport == @pg && ip"},
	} {
		rule.UUID, rule.FromPort = id, true
		c.put(rule)
	}
	for i := range 1000 {
		network, router := fmt.Sprintf("net%03d", i), fmt.Sprintf("r%02d", i/10)
		c.put(ovn.DatapathBinding{UUID: ovn.UUID(network), TunnelKey: uint32(i + 1), ExternalIDs: map[string]string{"logical-switch": "nb-" + network, "name": network}})
		c.connect(router, network, fmt.Sprintf("fa:16:3e:01:%02x:%02x 10.%d.0.1/24", i/256, i%256, i%10))
		c.put(ovn.LogicalSwitch{UUID: ovn.UUID("nb-" + network), LoadBalancers: c.probing(network, i)})
		for n := range 10 {
			name, index := fmt.Sprintf("vm-%s-%d", network, n), uint32(10+i*10+n)
			c.port(name, network, here, fmt.Sprintf("fa:16:3e:03:%02x:%02x 10.%d.0.%d", i/256, i%256, i%10, n+50))
			group.Ports = append(group.Ports, ovn.UUID("lsp-"+name))
			tap := "tap" + name
			c.put(ovn.Interface{UUID: ovn.UUID("if-" + name), Name: tap, IfaceID: name, IfIndex: index},
				ovn.Port{UUID: ovn.UUID("po-" + name), Name: tap, Interfaces: []ovn.UUID{ovn.UUID("if-" + name)}})
			bridge.Ports = append(bridge.Ports, ovn.UUID("po-"+name))
			c.devices[tap] = intent.TapDevice{Name: tap, IfIndex: index}
		}
	}
	c.put(bridge, group)
	return c
}

// probing puts ten load balancers of the i-th network with probes of their backends.
func (c cloud) probing(network string, i int) (out []ovn.UUID) {
	ports := map[netip.Addr]string{}
	for n := range 3 {
		name, address := fmt.Sprintf("be-%s-%d", network, n), fmt.Sprintf("10.%d.0.%d", i%10, n+20)
		c.port(name, network, "", fmt.Sprintf("fa:16:3e:02:%02x:%02x %s", i/256, i%256, address))
		ports[netip.MustParseAddr(address)] = name
		for v := range 10 {
			c.put(ovn.ServiceMonitor{UUID: ovn.UUID(fmt.Sprintf("probe-%s-%d-%d", network, n, v)), LogicalPort: name, IP: address, Protocol: "tcp", Port: uint16(8080 + v), Status: "online"})
		}
	}
	for v := range 10 {
		at, name := fmt.Sprintf("10.99.%d.%d:80", i%10, v+1), fmt.Sprintf("%s-%d", network, v)
		c.put(ovn.HealthCheck{UUID: ovn.UUID("check-" + name), VIP: at}, ovn.LoadBalancer{UUID: ovn.UUID("lb-" + name), Name: name, HealthChecks: []ovn.UUID{ovn.UUID("check-" + name)}, Ports: ports,
			VIPs: map[string]string{at: fmt.Sprintf("10.%[1]d.0.20:%[2]d,10.%[1]d.0.21:%[2]d,10.%[1]d.0.22:%[2]d", i%10, 8080+v)}})
		out = append(out, ovn.UUID("lb-"+name))
	}
	return out
}

// BenchmarkStep is one change on a large node, from the row to what differs.
func BenchmarkStep(b *testing.B) {
	c := node()
	probe := c.rows["probe-net500-1-3"].(ovn.ServiceMonitor)
	down := probe
	down.Status = "offline"
	vm := c.rows["pb-vm-net500-3"].(ovn.PortBinding)
	away := vm
	away.Chassis = ""
	balancer := c.rows["lb-net500-3"].(ovn.LoadBalancer)
	fewer := balancer
	fewer.VIPs = map[string]string{"10.99.0.4:80": "10.0.0.20:8083"}
	backend := c.rows["pb-be-net500-1"].(ovn.PortBinding)
	moved := backend
	moved.MAC = []string{"fa:16:3e:02:ff:ff 10.0.0.21"}
	group := c.rows["pg"].(ovn.PortGroup)
	without := group
	without.Ports = group.Ports[:len(group.Ports)-1]
	allow := c.rows["acl4"].(ovn.ACL)
	other := allow
	other.Match = "inport == @pg && ip4 && ip4.src == 0.0.0.0/0"
	for _, bench := range []struct {
		name    string
		changes [2]ovn.Row // there and back
		same    bool       // nothing differs after it
	}{
		{"probe", [2]ovn.Row{down, probe}, false},
		{"vm", [2]ovn.Row{away, vm}, false},
		{"balancer", [2]ovn.Row{fewer, balancer}, false},
		{"backend", [2]ovn.Row{moved, backend}, false},
		{"group", [2]ovn.Row{without, group}, true},
		{"acl-of-all", [2]ovn.Row{other, allow}, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			store := c.load()
			t := NewTranslator(Config{}, &loadbalancer.Book{})
			t.SetDevices(c.devices)
			t.Step(store, ovn.Dirty{}, synced)
			n := 0
			for b.Loop() {
				dirty := store.Apply([]ovn.Change{ovn.Set(bench.changes[n%2])})
				if d := t.Step(store, dirty, synced); d.Empty() != bench.same {
					b.Fatal(d)
				}
				n++
			}
		})
	}
	b.Run("all", func(b *testing.B) {
		store, readings := c.load(), &loadbalancer.Book{}
		for b.Loop() {
			t := NewTranslator(Config{}, readings)
			t.SetDevices(c.devices)
			t.Step(store, ovn.Dirty{}, synced)
			if len(wanted.Rows(t.Tables(), intent.ClientVIPs)) != 10000 || len(t.VMs()) != 10000 || t.VMs()[0].Choice.Path != "ebpf" {
				b.Fatal(len(wanted.Rows(t.Tables(), intent.ClientVIPs)), len(t.VMs()), t.VMs()[0])
			}
		}
	})
}

// BenchmarkACLs is a probe that changes on a switch with 1,000 VIPs of ten backends, whose ten
// VMs have rules of a security group that name networks and ports.
func BenchmarkACLs(b *testing.B) {
	for name, matches := range map[string][]string{
		"by-source": {"inport == @pg && ip4"},
		"by-destination": {"inport == @pg && ip4 && ip4.dst == 10.0.0.0/8 && tcp", "inport == @pg && ip4 && ip4.dst == 192.0.2.0/24 && udp && udp.dst == 53", "inport == @pg && ip4 && ip4.dst == $remote",
			"inport == @pg && ip4 && tcp && tcp.dst >= 8000 && tcp.dst <= 8100", "inport == @pg && ip4 && tcp && tcp.dst == 22"},
	} {
		b.Run(name, func(b *testing.B) {
			c := crowded(matches)
			store, t := c.load(), NewTranslator(Config{}, &loadbalancer.Book{})
			t.SetDevices(c.devices)
			t.Step(store, ovn.Dirty{}, synced)
			if m := t.VMs(); len(m) != 10 || m[0].Choice.Path != "ebpf" {
				b.Fatal(m)
			}
			probe := c.rows["probe"].(ovn.ServiceMonitor)
			for b.Loop() {
				probe.Status = map[string]string{"online": "offline", "offline": "online"}[probe.Status]
				if d := t.Step(store, store.Apply([]ovn.Change{ovn.Set(probe)}), synced); d.Empty() {
					b.Fatal("nothing differs")
				}
			}
		})
	}
}

// crowded is a switch with many VIPs, and a security group that allows what matches.
func crowded(matches []string) cloud {
	c := sample()
	vips, ports := map[string]string{}, map[netip.Addr]string{}
	var backends []string
	for n := range 10 {
		name, address := fmt.Sprint("be", n), fmt.Sprintf("10.0.0.%d", n+100)
		c.port(name, "red", "", fmt.Sprintf("fa:16:3e:02:00:%02x %s", n, address))
		backends, ports[netip.MustParseAddr(address)] = append(backends, address+":8080"), name
	}
	for n := range 1000 {
		vips[fmt.Sprintf("10.9.%d.%d:80", n/250, n%250+1)] = strings.Join(backends, ",")
	}
	c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: vips, Ports: ports, HealthChecks: []ovn.UUID{"check"}}, ovn.HealthCheck{UUID: "check", VIP: "10.9.0.1:80"},
		ovn.ServiceMonitor{UUID: "probe", LogicalPort: "be0", IP: "10.0.0.100", Protocol: "tcp", Port: 8080, Status: "online"},
		ovn.AddressSet{UUID: "set", Name: "remote", Addresses: []string{"192.0.2.1", "192.0.2.2"}})
	group := ovn.PortGroup{UUID: "pg", Name: "pg", ACLs: []ovn.UUID{"acl-drop"}}
	c.put(ovn.ACL{UUID: "acl-drop", FromPort: true, Priority: 1001, Action: "drop", Match: "inport == @pg && ip"})
	for n, match := range matches {
		id := ovn.UUID(fmt.Sprint("acl-", n))
		group.ACLs = append(group.ACLs, id)
		c.put(ovn.ACL{UUID: id, FromPort: true, Priority: 1002, Action: "allow-related", Match: match})
	}
	for n := range 9 {
		name := fmt.Sprint("vm", n)
		c.port(name, "red", here, fmt.Sprintf("fa:16:3e:03:00:%02x 10.0.0.%d", n, n+50))
		c.plug(name, uint32(100+n))
		group.Ports = append(group.Ports, ovn.UUID("lsp-"+name))
	}
	group.Ports = append(group.Ports, "lsp-vm")
	c.put(group)
	return c
}
