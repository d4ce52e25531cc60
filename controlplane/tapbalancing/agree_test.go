package tapbalancing

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// shared is a router with two networks, red and blue, whose load balancers hang on it and on
// both switches; this node has its gateway port, and a VM on each switch.
type shared struct {
	*rand.Rand
	cloud
}

const sharedVNI = intent.VNI(1001)

func newShared(r *rand.Rand) shared {
	c := shared{r, cloud{map[ovn.UUID]ovn.Row{}, map[string]intent.TapDevice{}}}
	c.put(ovn.Chassis{UUID: here, Name: "a1"}, ovn.NBGlobal{UUID: "global"},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings": "physnet1:br-ex"}},
		ovn.Port{UUID: "po-patch", Name: "patch-provnet-to-br-int", ExternalIDs: map[string]string{"ovn-localnet-port": "provnet"}},
		ovn.Bridge{UUID: "br-ex", Name: "br-ex", Ports: []ovn.UUID{"po-patch"}},
		ovn.PortBinding{UUID: "pb-provnet", LogicalPort: "provnet", Type: ovn.TypeLocalnet, Datapath: "ext", Options: map[string]string{"network_name": "physnet1"}})
	for key, name := range []string{"red", "blue", "ext", "router"} {
		kind := "logical-switch"
		if name == "router" {
			kind = "logical-router"
		}
		c.put(ovn.DatapathBinding{UUID: ovn.UUID(name), TunnelKey: uint32(key + 1), ExternalIDs: map[string]string{kind: "nb-" + name, "name": name}})
	}
	vni := map[string]string{"neutron_bgpvpn:vni": sharedVNI.String(), "neutron_bgpvpn:as": "64999"}
	const gateway = "fa:16:3e:00:00:03 172.24.4.9/24 2001:db8:ff::9/64"
	c.connect("router", "red", "fa:16:3e:00:00:01 10.10.0.1/24 2001:db8:10::1/64")
	c.connect("router", "blue", "fa:16:3e:00:00:02 10.11.0.1/24 2001:db8:11::1/64")
	c.connect("router", "ext", gateway)
	c.put(ovn.PortBinding{UUID: "pb-cr", LogicalPort: "cr-router-ext", Type: ovn.TypeChassisRedirect, Datapath: "router", Chassis: here, MAC: []string{gateway},
		Options: map[string]string{"distributed-port": "router-ext"}})
	exposed := []string{"ext-router"}
	for _, network := range []string{"red", "blue"} {
		if r.IntN(3) > 0 {
			exposed = append(exposed, network+"-router")
		}
		c.port("vm-"+network, network, here, map[string]string{"red": "fa:16:3e:00:01:05 10.10.0.5 2001:db8:10::5", "blue": "fa:16:3e:00:01:06 10.11.0.5 2001:db8:11::5"}[network])
	}
	for _, name := range exposed {
		p := c.rows[ovn.UUID("pb-"+name)].(ovn.PortBinding)
		p.ExternalIDs = vni
		c.put(p)
	}
	return c
}

// members are addresses of the router's networks, and at times of none, with what ports there
// are for them: one that has the address, that is virtual, that has none, or that was deleted.
func (c shared) members(six bool) (out []string) {
	formats := []string{"10.10.0.%d", "10.11.0.%d", "10.77.0.%d", "172.24.4.%d"}
	if six {
		formats = []string{"2001:db8:10::%d", "2001:db8:11::%d", "2001:db8:77::%d", "2001:db8:ff::%d"}
	}
	for range 1 + c.IntN(4) {
		at, host := c.IntN(2), 20+c.IntN(8)
		if c.IntN(16) == 0 {
			at = 2 + c.IntN(2)
		}
		address := fmt.Sprintf(formats[at], host)
		out = append(out, address)
		network, name := []string{"red", "blue", "", ""}[at], fmt.Sprintf("member-%d-%d", at, host)
		if network == "" {
			continue
		}
		p := ovn.PortBinding{UUID: ovn.UUID("pb-" + name), LogicalPort: name, Datapath: ovn.UUID(network), Type: pick(world{Rand: c.Rand}, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVirtual, ovn.TypeExternal)}
		mac := fmt.Sprintf("fa:16:3e:00:%02d:%02d", at+2, host)
		switch c.IntN(6) {
		case 0: // it was deleted, or never there
			continue
		case 1:
			p.MAC = []string{"unknown"}
		case 2:
			p.MAC = []string{mac}
		case 3:
		default:
			p.MAC = []string{mac + " " + fmt.Sprintf(formats[at], host)}
		}
		c.put(p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c shared) balancers() {
	var ids []ovn.UUID
	for n := range 1 + c.IntN(3) {
		id := ovn.UUID(fmt.Sprint("lb-", n))
		six := c.IntN(2) == 0
		var list, weights []string
		for _, a := range c.members(six) {
			at := netip.AddrPortFrom(netip.MustParseAddr(a), 8080)
			list = append(list, at.String())
			if c.IntN(3) == 0 {
				weights = append(weights, fmt.Sprintf("%s=%d", at, c.IntN(4)))
			}
			if c.IntN(3) == 0 {
				c.put(ovn.ServiceMonitor{UUID: ovn.UUID("probe-" + at.String()), LogicalPort: "probed", IP: a, Protocol: "tcp", Port: 8080, Status: pick(world{Rand: c.Rand}, "online", "offline", "error", "")})
			}
		}
		vip := fmt.Sprintf("10.99.0.%d:80", n)
		if six {
			vip = fmt.Sprintf("[fd00:99::%d]:80", n)
		}
		b := ovn.LoadBalancer{UUID: id, Name: fmt.Sprint("lb", n), VIPs: map[string]string{vip: strings.Join(list, ",")}, Options: map[string]string{}, Ports: map[netip.Addr]string{}}
		for _, at := range list {
			b.Ports[netip.MustParseAddrPort(at).Addr()] = "probed"
		}
		if c.IntN(2) == 0 {
			b.HealthChecks = []ovn.UUID{ovn.UUID(fmt.Sprint("check-", n))}
			c.put(ovn.HealthCheck{UUID: b.HealthChecks[0], VIP: vip})
		}
		if len(weights) > 0 {
			b.Options["sluice-weights"] = strings.Join(weights, ",")
		}
		for option, values := range map[string][]string{"sluice-path": {"ovn", "auto", "x"}, "sluice-m": {"1021", "4093", "0"}, "reject": {"true"}, "event": {"true"}, "affinity_timeout": {"60"}, "ct_flush": {"true"}} {
			if c.IntN(8) == 0 {
				b.Options[option] = values[c.IntN(len(values))]
			}
		}
		ids = append(ids, id)
		c.put(b)
	}
	c.put(ovn.LogicalRouter{UUID: "nb-router", LoadBalancers: ids}, ovn.LogicalSwitch{UUID: "nb-red", LoadBalancers: ids}, ovn.LogicalSwitch{UUID: "nb-blue", LoadBalancers: ids})
}

type index struct{}

func (index) Index(intent.VNI) (uint16, error) { return 1, nil }
func (index) Release(intent.VNI)               {}
func (index) Commit() error                    { return nil }

func (index) Seniority(_ intent.VNI, routers []string) []string { return routers }
func (index) Leave(intent.VNI, string)                          {}

// decision is all that says where flows to a VIP go.
type decision struct {
	Path     loadbalancer.Path
	Reason   string
	Backends []loadbalancer.Backend
	Row      intent.VIP
}

func decisionOf(v intent.VIP, backends []loadbalancer.Backend, choice loadbalancer.Choice) decision {
	v.Key.VNI = 0
	return decision{choice.Path, choice.Reason, backends, v}
}

// TestPlacesAgree: the gateway of a router and the taps of its switches, the members' own and
// others, never disagree on who balances a VIP, on its backends, or on their weights and health;
// and where eBPF balances, frames for each backend have somewhere to go.
func TestPlacesAgree(t *testing.T) {
	const runs = 500
	seen := map[string]int{}
	for seed := range uint64(runs) {
		c := newShared(rand.New(rand.NewPCG(seed, 3)))
		c.balancers()
		rows := c.load()
		gateway := evpn.NewTranslator(evpn.Config{ASN: 65001, NextHopMAC: intent.MAC{2, 0x5c, 0, 0, 0, 1}, LoadBalancing: true}, index{}, &loadbalancer.Book{})
		gateway.Step(rows, ovn.Dirty{All: true}, true)
		vms := NewTranslator(Config{}, &loadbalancer.Book{})
		vms.Step(rows, ovn.Dirty{All: true}, synced)
		at := map[string]map[string]decision{}
		note := func(place string, v intent.VIP, d decision) {
			vip := intent.FormatEndpoint(v.Key.Addr, v.Key.Port)
			if at[vip] == nil {
				at[vip] = map[string]decision{}
			}
			at[vip][place] = d
		}
		for _, b := range gateway.Balanced() {
			note("gateway", b.VIP, decisionOf(b.VIP, b.Backends, b.Choice))
		}
		ways := wanted.Rows(vms.Tables(), intent.ClientNeighbors)
		for _, b := range vms.Balanced() {
			note(b.Switch, b.VIP, decisionOf(b.VIP, b.Backends, b.Choice))
			for _, backend := range b.Backends {
				if n := ways[intent.NeighborKey{Scope: b.VIP.Key.VNI, Addr: backend.Address.Addr()}]; b.Choice.Path == loadbalancer.PathEBPF && n.MAC.IsZero() {
					t.Errorf("seed %d: on %s backend %s has no MAC address", seed, b.Switch, backend.Address)
				}
			}
		}
		for vip, places := range at {
			if len(places) != 3 {
				t.Fatalf("seed %d: VIP %s is known in %d places", seed, vip, len(places))
			}
			seen[string(places["gateway"].Path)+" "+places["gateway"].Reason]++
			for _, other := range []string{"red", "blue"} {
				if d := cmp.Diff(places["gateway"], places[other], cmpopts.EquateComparable(netip.AddrPort{}, intent.VIP{})); d != "" {
					t.Errorf("seed %d: VIP %s (-gateway +switch %s):\n%s", seed, vip, other, d)
				}
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for what, least := range map[string]int{"ebpf " + reason.PathAuto: runs / 2, "ovn " + reason.BackendOutside: runs / 8, "ebpf " + reason.NoBackends: runs / 50} {
		if seen[what] < least {
			t.Errorf("in %d worlds %d times %s", runs, seen[what], what)
		}
	}
	t.Log(seen)
}

// Who has an address of the provider network without a port is no business of the routers with a
// gateway port there.
func TestBackendOnProviderNetwork(t *testing.T) {
	for _, gateway := range []string{"chassisredirect", "gateway router"} {
		c := sample()
		c.port("vm", "ext", here, "fa:16:3e:00:00:05 192.0.2.5")
		c.put(ovn.LoadBalancer{UUID: "lb-web", Name: "web", VIPs: map[string]string{"192.0.2.99:80": "192.0.2.77:80"}},
			ovn.LogicalSwitch{UUID: "nb-ext", LoadBalancers: []ovn.UUID{"lb-web"}})
		if gateway != "chassisredirect" {
			delete(c.rows, "pb-cr")
			p := c.rows["pb-router-ext"].(ovn.PortBinding)
			p.Type = ovn.TypeL3Gateway
			c.put(p, ovn.PortBinding{UUID: "pb-provnet", LogicalPort: "provnet", Type: ovn.TypeLocalnet, Datapath: "ext"})
		}
		tr := NewTranslator(Config{}, &loadbalancer.Book{})
		tr.SetDevices(c.devices)
		tr.Step(c.load(), ovn.Dirty{All: true}, synced)
		if got, want := say(tr), "192.0.2.99:80 ovn:backend-outside; vm ebpf:auto"; got != want {
			t.Errorf("%s: %s, want %s", gateway, got, want)
		}
	}
}
