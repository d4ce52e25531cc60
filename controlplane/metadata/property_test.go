package metadata

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestAnyOrder: any sequence of row changes in any batching, with a step only when a batch
// is said to be of metadata, leaves what one computation from the end state gives; the
// differences of the steps add up to it; and no tap, nor address in a namespace, is two
// ports'.
func TestAnyOrder(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 60
	}
	var tapped, spaced, complained int
	for seed := range runs {
		tr := anyOrder(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for _, p := range tr.Ports() {
			tapped += btoi(p.Via == ViaTap)
			spaced += btoi(p.Via == ViaNamespace)
		}
		complained += min(1, len(tr.Objects()))
	}
	// A world in which nothing happens would prove nothing.
	if tapped < runs/8 || spaced < runs/8 || complained < runs/4 {
		t.Errorf("in %d worlds %d ports have a tap, %d a namespace, and %d complain", runs, tapped, spaced, complained)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func FuzzAnyOrder(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { anyOrder(t, rand.New(rand.NewPCG(seed, 2))) })
}

func anyOrder(t *testing.T, r *rand.Rand) *Translator {
	cfg := Config{Path: pick(r, PathAuto, PathAuto, PathEBPF, PathNamespace), Answer: answer, PublishNetworks: r.IntN(2) == 0, Respect: r.IntN(3) == 0}
	live := ovn.NewRows()
	live.FollowVMs(true)
	live.FollowACLs(true)
	now := cloud{map[string]ovn.Row{}, randomDevices(r)}
	tr, sum := NewTranslator(cfg), wanted.NewSet()
	steps := 1 + r.IntN(30)
	for step := range steps {
		var batch []ovn.Change
		if step == 0 {
			now.rows = randomWorld(r).rows
			for _, id := range slices.Sorted(maps.Keys(now.rows)) {
				batch = append(batch, ovn.Set(now.rows[id]))
			}
		}
		for range r.IntN(6) {
			c := randomChange(r)
			batch = append(batch, c)
			if c.New != nil {
				now.rows[string(c.UUID)] = c.New
			} else {
				delete(now.rows, string(c.UUID))
			}
		}
		looked := r.IntN(4) == 0
		if looked {
			now.devices = randomDevices(r)
		}
		dirty := live.Apply(batch)
		if dirty.VMs || dirty.All || looked || tr.Stale() {
			sb := step == steps-1 || r.IntN(4) > 0
			sum.Apply(tr.Step(live, now.devices, ovn.InSync{SB: sb, SBGrows: !sb && r.IntN(2) > 0, NB: true}))
		}
	}
	sum.Apply(tr.Step(live, now.devices, synced)) // of what was stale; else it is nothing
	fresh := NewTranslator(cfg)
	fresh.Step(now.load(), now.devices, synced)
	for what, d := range map[string]wanted.Difference{"tables": wanted.Diff(fresh.Tables(), tr.Tables()), "sum of differences": wanted.Diff(tr.Tables(), sum)} {
		if !d.Empty() {
			t.Errorf("%s (from at once to step by step): %+v", what, d)
		}
	}
	for what, pair := range map[string][2]any{
		"ports": {fresh.Ports(), tr.Ports()}, "networks": {fresh.Networks(), tr.Networks()},
		"objects": {fresh.Objects(), tr.Objects()}, "agent": {fresh.Agent(), tr.Agent()},
	} {
		if d := cmp.Diff(pair[0], pair[1]); d != "" {
			t.Errorf("%s (-at once +step by step):\n%s", what, d)
		}
	}
	nobodyTwice(t, tr)
	answersGoHome(t, tr)
	return tr
}

// nobodyTwice: a tap with a VLAN is one port's.
func nobodyTwice(t *testing.T, tr *Translator) {
	seen := map[claim]string{}
	for _, p := range wanted.Rows(tr.Tables(), intent.MetadataPorts) {
		if p.Tap.IfIndex == 0 {
			if _, ok := wanted.Rows(tr.Tables(), intent.MetadataNetworks)[p.Network]; !ok {
				t.Errorf("port %s has neither a tap nor a namespace", p.Port)
			}
			continue
		}
		k := claim{p.Tap.IfIndex, p.Tap.VLAN}
		if other, twice := seen[k]; twice {
			t.Errorf("ports %s and %s have the tap %+v", other, p.Port, p.Tap)
		}
		seen[k] = p.Port
	}
}

// answersGoHome: by whatever address a port is told in a namespace, the answer goes to a MAC
// address of that port, or two ports have the address.
func answersGoHome(t *testing.T, tr *Translator) {
	tables := tr.Tables()
	holders := map[string]map[netip.Addr]map[string]bool{}
	for _, p := range tr.Ports() {
		if holders[p.Network] == nil {
			holders[p.Network] = map[netip.Addr]map[string]bool{}
		}
		for _, a := range toldBy(p.Addresses) {
			if holders[p.Network][a] == nil {
				holders[p.Network][a] = map[string]bool{}
			}
			holders[p.Network][a][p.Port] = true
		}
	}
	for _, p := range wanted.Rows(tables, intent.MetadataPorts) {
		n := wanted.Rows(tables, intent.MetadataNetworks)[p.Network]
		if p.Tap.IfIndex != 0 {
			continue
		}
		for _, a := range toldBy(p.Addresses) {
			routed := a.Is6() && n.IPv6
			for _, s := range n.Addresses.All() {
				routed = routed || s.Contains(a)
			}
			if !routed || len(holders[p.Network][a]) > 1 {
				continue
			}
			if !slices.ContainsFunc(n.Neighbours.All(), func(g intent.PortAddress) bool {
				return g.Addr == a && slices.ContainsFunc(p.Addresses.All(), func(own intent.PortAddress) bool { return own.MAC == g.MAC })
			}) {
				t.Errorf("port %s is told by %s on %s, whose neighbours are %s", p.Port, a, p.Network, n.Neighbours)
			}
		}
	}
}

// toldBy are the addresses by which VMs are told apart in a namespace.
func toldBy(set intent.PortAddressSet) (out []netip.Addr) {
	for _, g := range set.All() {
		out = append(out, g.MAC.LinkLocal())
		if g.Addr.Is4() || g.Addr.IsLinkLocalUnicast() {
			out = append(out, g.Addr)
		}
	}
	return out
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomChange(r *rand.Rand) ovn.Change {
	world := randomWorld(r).rows
	id := pick(r, slices.Sorted(maps.Keys(world))...)
	row := world[id]
	if r.IntN(16) == 0 {
		switch row.(type) {
		case ovn.PortBinding:
			return ovn.Delete(ovn.TablePortBinding, row.Key())
		case ovn.DatapathBinding:
			return ovn.Delete(ovn.TableDatapathBinding, row.Key())
		case ovn.Interface:
			return ovn.Delete(ovn.TableInterface, row.Key())
		case ovn.Port:
			return ovn.Delete(ovn.TablePort, row.Key())
		case ovn.Bridge:
			return ovn.Delete(ovn.TableBridge, row.Key())
		case ovn.Chassis:
			return ovn.Delete(ovn.TableChassis, row.Key())
		case ovn.ACL:
			return ovn.Delete(ovn.TableACL, row.Key())
		case ovn.PortGroup:
			return ovn.Delete(ovn.TablePortGroup, row.Key())
		case ovn.AddressSet:
			return ovn.Delete(ovn.TableAddressSet, row.Key())
		case ovn.LogicalSwitchPort:
			return ovn.Delete(ovn.TableLogicalSwitchPort, row.Key())
		case ovn.LogicalSwitch:
			return ovn.Delete(ovn.TableLogicalSwitch, row.Key())
		}
	}
	return ovn.Set(row)
}

func randomDevices(r *rand.Rand) map[string]intent.TapDevice {
	out := map[string]intent.TapDevice{}
	for n := range 5 {
		name := fmt.Sprint("tap", n)
		switch r.IntN(12) {
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

var allPorts = []ovn.UUID{"po-0", "po-1", "po-2", "po-3", "po-4"}

// randomWorld is a small one, in which names, taps and addresses collide often.
func randomWorld(r *rand.Rand) cloud {
	c := cloud{rows: map[string]ovn.Row{}}
	c.put(ovn.Chassis{UUID: here, Name: pick(r, "a1", "a1", "a1", "a1", "a1", "a1", "a1", "a1", "a1", "a9")},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge": pick(r, "", "", "", "", "", "br-other")}},
		ovn.Bridge{UUID: "br-int", Name: "br-int", Ports: pick(r, allPorts, allPorts, allPorts, []ovn.UUID{"po-0"}), DatapathType: pick(r, "", "", "netdev")},
		ovn.Bridge{UUID: "br-other", Name: "br-other", Ports: pick(r, nil, []ovn.UUID{"po-4"})})
	const good = "fa:16:3e:00:00:01 10.0.0.2"
	for n := range 3 {
		name := fmt.Sprint("net", n)
		c.network(name, pick(r, good, good, good, good, good, "", "x"), pick(r, "10.0.0.2/24", "10.0.0.2/24 10.0.1.2/24", "10.0.0.2/24 10.0.1.2/24", "", "x"))
		c.put(ovn.DatapathBinding{UUID: ovn.UUID(name), ExternalIDs: map[string]string{"logical-switch": "nb-" + name, "name": pick(r, "neutron-"+name, "neutron-"+name, "neutron-"+name, "neutron-"+name, "net0", "")}})
		c.edit("md-"+name, func(p *ovn.PortBinding) {
			p.Datapath = ovn.UUID(pick(r, name, name, name, "net0"))
			p.Type = pick(r, ovn.TypeLocalport, ovn.TypeLocalport, ovn.TypeLocalport, ovn.TypeVIF)
			p.ExternalIDs[keyMTU] = pick(r, "1442", "", "x")
		})
	}
	c.randomACLs(r)
	for n := range 5 {
		name := fmt.Sprint("vm", n)
		c.vm(name, fmt.Sprint("net", r.IntN(3)), pick(r, pick(r, "unknown", "x"), fmt.Sprintf("fa:16:3e:00:00:%02d 10.0.%d.%d", pick(r, 5, 5+n), r.IntN(2), 5+n), fmt.Sprintf("fa:16:3e:00:00:%02d 10.0.%d.%d", pick(r, 5, 5+n), r.IntN(2), 5+r.IntN(3)), fmt.Sprintf("fa:16:3e:00:00:%02d 2001:db8::%d", 5+n, r.IntN(3))))
		c.edit(name, func(p *ovn.PortBinding) {
			p.Type = pick(r, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeExternal, ovn.TypeExternal, pick(r, ovn.TypeLocalport, ovn.TypeVirtual))
			p.Chassis, p.AdditionalChassis = pick(r, here, here, here, here, there, ""), pick(r, nil, nil, []ovn.UUID{here}, []ovn.UUID{there, here})
			if r.IntN(6) == 0 {
				p.ParentPort, p.Tag = pick(r, "vm0", "vm1"), r.IntN(3)
			}
			if r.IntN(4) == 0 {
				delete(p.ExternalIDs, keyDeviceID)
			}
		})
		tap, one := fmt.Sprint("tap", n), []ovn.UUID{ovn.UUID(fmt.Sprint("if-", n))}
		c.put(ovn.Interface{UUID: ovn.UUID(fmt.Sprint("if-", n)), Name: tap, IfaceID: pick(r, name, name, name, "vm0", ""), IfIndex: pick(r, uint32(10+n), uint32(10+n), 0, 99)},
			ovn.Port{UUID: ovn.UUID(fmt.Sprint("po-", n)), Name: tap, Interfaces: pick(r, one, one, one, one, nil)})
	}
	return c
}

// randomACLs puts what Northbound has of the ports.
func (c cloud) randomACLs(r *rand.Rand) {
	c.put(ovn.NBGlobal{UUID: "nb-global", DefaultDrop: r.IntN(8) == 0},
		ovn.AddressSet{UUID: "set", Name: "near", Addresses: pick(r, nil, []string{"10.0.0.0/8"}, []string{"169.254.169.254"})})
	for n := range 3 {
		acl := ovn.UUID(fmt.Sprint("acl-", n))
		c.put(ovn.ACL{UUID: acl, FromPort: r.IntN(4) > 0, Priority: r.IntN(3), Action: pick(r, "drop", "allow-related", "pass"),
			Match: pick(r, "ip4", "ip6", "ip4.dst == $near", "inport == @pg_0", "inport == @pg_1 && tcp", "ct.new", "?")})
		c.put(ovn.PortGroup{UUID: ovn.UUID(fmt.Sprint("pg-", n)), Name: fmt.Sprint("pg_", n), Ports: pick(r, nil, []ovn.UUID{"lsp-0"}, []ovn.UUID{"lsp-0", "lsp-1", "lsp-2"}), ACLs: pick(r, nil, []ovn.UUID{acl}, []ovn.UUID{acl, "acl-0"})},
			ovn.LogicalSwitch{UUID: ovn.UUID(fmt.Sprint("nb-net", n)), ACLs: pick(r, nil, nil, []ovn.UUID{"acl-1"})})
	}
	for n := range 5 {
		c.put(ovn.LogicalSwitchPort{UUID: ovn.UUID(fmt.Sprint("lsp-", n)), Name: fmt.Sprint("vm", n)})
	}
}
