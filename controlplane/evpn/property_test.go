package evpn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestAnyOrder: any sequence of row changes in any batching leaves the same
// tables, errors and notes as one computation from the end state, and the
// differences of the steps add up to these tables.
func TestAnyOrder(t *testing.T) {
	runs := 150
	if testing.Short() {
		runs = 30
	}
	var announced, refused int
	for seed := range runs {
		tr := anyOrder(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		announced += min(1, len(wanted.Rows(tr.Tables(), intent.Announcements)))
		refused += min(1, len(tr.Errors()))
	}
	// A world in which nothing happens would prove nothing.
	if announced < runs/15 || refused < runs/10 {
		t.Errorf("of %d worlds %d announce something and %d complain", runs, announced, refused)
	}
	t.Logf("of %d worlds %d announce something and %d complain", runs, announced, refused)
}

func FuzzAnyOrder(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { anyOrder(t, rand.New(rand.NewPCG(seed, 2))) })
}

func anyOrder(t *testing.T, r *rand.Rand) *Translator {
	cfg := testConfig()
	cfg.AnnounceNAT = r.IntN(4) == 0
	cfg.Standby, cfg.DynamicRouting, cfg.Learn = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	if r.IntN(2) == 0 {
		cfg.Announce = AnnounceBoth
	}
	cfg.Path = pick(r, 0, 0, PathAuto, PathEBPF, PathKernel)
	cfg.VRFs = map[intent.VNI]VRFConfig{2: {Path: pick(r, 0, PathAuto, PathEBPF, PathKernel), Quiet: r.IntN(8) == 0}}
	facts := PathFacts{}
	live, now := ovn.NewRows(), cloud{}
	tr := NewTranslator(cfg, identity{}, &loadbalancer.Book{})
	sum := wanted.NewSet()
	steps := 1 + r.IntN(40)
	for step := range steps {
		var batch []ovn.Change
		if step == 0 {
			now = randomWorld(r)
			for _, id := range slices.Sorted(maps.Keys(now)) {
				batch = append(batch, ovn.Set(now[id]))
			}
		}
		for range 1 + r.IntN(12) {
			c := randomChange(r)
			batch = append(batch, c)
			if c.New != nil {
				now[string(c.UUID)] = c.New
			} else {
				delete(now, string(c.UUID))
			}
		}
		before, objects := tr.Complaints(), tr.Objects()
		if r.IntN(3) == 0 {
			facts = PathFacts{Full: pick(r, nil, map[intent.VNI]string{1: "hosts"}, map[intent.VNI]string{2: "hosts"})}
			sum.Apply(tr.SetFacts(facts))
		}
		sum.Apply(tr.Step(live, live.Apply(batch), step == steps-1 || r.IntN(4) > 0))
		if d := cmp.Diff(objects, tr.Objects()); d != "" && tr.Complaints() == before {
			t.Errorf("nothing is said of changed objects (-before +after):\n%s", d)
		}
	}
	fresh := NewTranslator(cfg, identity{}, &loadbalancer.Book{})
	fresh.SetFacts(facts)
	fresh.Step(now.load(), ovn.Dirty{All: true}, true)
	if d := diffTables(fresh.Tables(), tr.Tables()); d != "" {
		t.Errorf("tables (-at once +step by step):\n%s", d)
	}
	if d := diffTables(tr.Tables(), sum); d != "" {
		t.Errorf("tables (-kept +sum of differences):\n%s", d)
	}
	wantErrs, wantNotes := complaints(fresh)
	gotErrs, gotNotes := complaints(tr)
	if d := cmp.Diff(wantErrs, gotErrs); d != "" {
		t.Errorf("errors (-at once +step by step):\n%s", d)
	}
	if d := cmp.Diff(wantNotes, gotNotes); d != "" {
		t.Errorf("notes (-at once +step by step):\n%s", d)
	}
	return tr
}

// diffTables names the rows that differ.
func diffTables(a, b wanted.Set) string {
	d := wanted.Diff(a, b)
	if d.Empty() {
		return ""
	}
	return fmt.Sprintf("%+v", d)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomChange picks a row of a small world, in which names, addresses, VNIs and
// frame keys collide often, and gives it random content, or removes it.
func randomChange(r *rand.Rand) ovn.Change {
	world := randomWorld(r)
	id := pick(r, slices.Sorted(maps.Keys(world))...)
	row := world[id]
	if r.IntN(12) == 0 {
		kinds := map[string]ovn.Table{"pb": ovn.TablePortBinding, "dp": ovn.TableDatapathBinding, "ch": ovn.TableChassis, "cp": ovn.TableChassisPrivate,
			"os": ovn.TableOpenvSwitch, "br": ovn.TableBridge, "po": ovn.TablePort,
			"mb": ovn.TableMACBinding, "hg": ovn.TableHAChassisGroup, "lr": ovn.TableLogicalRouter, "na": ovn.TableNAT, "st": ovn.TableStaticRoute,
			"ls": ovn.TableLogicalSwitch, "ar": ovn.TableAdvertisedRoute}
		return ovn.Delete(kinds[id[:2]], ovn.UUID(id))
	}
	return ovn.Set(row)
}

func randomWorld(r *rand.Rand) cloud {
	c := cloud{}
	c.put(ovn.Chassis{UUID: "ch-here", Name: pick(r, "a1", "a1", "a1", "a1", "a1", "a1", "a1", "a9")},
		ovn.OpenvSwitch{UUID: "os", ExternalIDs: map[string]string{"system-id": "a1",
			"ovn-bridge-mappings": pick(r, "physnet1:br-ex", "physnet1:br-ex", "physnet1:br-two", "")}},
		ovn.Bridge{UUID: "br-ex", Name: "br-ex", Ports: pick(r, []ovn.UUID{"po-1"}, []ovn.UUID{"po-1", "po-2"})},
		ovn.Port{UUID: "po-1", Name: "br-ex"},
		ovn.Port{UUID: "po-2", Name: pick(r, "eth0", "sluice3-ovs")},
		ovn.HAChassisGroup{UUID: "hg-1", Name: "one"},
		ovn.ChassisPrivate{UUID: "cp-away", Chassis: pick(r, ovn.UUID("ch-away"), "ch-away", "ch-here", ""), Name: pick(r, "a2", "a2", "a3"),
			ExternalIDs: pick(r, nil, ovn.Pairs(intent.FabricAddress{VTEP: netip.MustParseAddr("192.0.2.2"), RouterMAC: intent.MAC{2, 0, 0, 0, 0, 2}}))},
		ovn.DatapathBinding{UUID: "dp-pub", ExternalIDs: map[string]string{"logical-switch": "ls-nbpub"}})
	c.randomPort(r, "ln", pick(r, ovn.TypeLocalnet, ovn.TypeLocalnet, ovn.TypeLocalnet, ovn.TypeLocalnet, ovn.TypeLocalnet, ovn.TypeVIF), "dp-pub", "", "unknown")
	ln := c["pb-ln"].(ovn.PortBinding)
	ln.Options["network_name"], ln.Tag = pick(r, "physnet1", "physnet1", "physnet1", "physnet1", "physnet9"), pick(r, 0, 0, 7)
	c.put(ln)
	c.randomSwitch(r, "pub")
	c.randomPort(r, "vm-pub", ovn.TypeVIF, "dp-pub", "", "02:00:00:00:09:09 "+pick(r, "172.24.4.99", "172.24.4.254"))
	for n := 1; n <= 3; n++ {
		c.randomRouter(r, n)
	}
	return c
}

// randomRouter puts a router with its ports, its tenant's switch and the VMs on it.
func (c cloud) randomRouter(r *rand.Rand, n int) {
	i := fmt.Sprint(n)
	c.put(ovn.DatapathBinding{UUID: ovn.UUID("dp-lr" + i), TunnelKey: pick(r, uint32(7), 8, 254), ExternalIDs: map[string]string{"logical-router": "lr-nb" + i, "name": "r" + i, keyVRFID: pick(r, "", "", "1", "2")}},
		ovn.DatapathBinding{UUID: ovn.UUID("dp-ls" + i), ExternalIDs: map[string]string{"logical-switch": "ls-nb" + i}})
	mac := fmt.Sprintf("02:00:00:00:00:%02d 172.24.4.%s/24 2001:db8:ff::%s/64", pick(r, n, n, n, n, 1), pick(r, i, "5"+i), i)
	c.randomPort(r, "cr"+i, ovn.TypeChassisRedirect, "dp-lr"+i, "", mac)
	cr := c["pb-cr"+i].(ovn.PortBinding)
	cr.HAChassisGroup = pick(r, ovn.UUID("hg-1"), "hg-2", "")
	cr.Options[optionDynamic] = pick(r, "", "true")
	cr.Chassis, cr.Options["distributed-port"] = pick(r, ovn.UUID("ch-here"), "ch-here", "ch-away", ""), "gw"+i
	c.put(cr)
	c.randomPort(r, "gw"+i, ovn.TypePatch, "dp-lr"+i, "sgw"+i, mac)
	c.randomPort(r, "sgw"+i, ovn.TypePatch, "dp-pub", "gw"+i, "router")
	subnet := pick(r, "10."+i+".0.1/24", "10.1.0.1/24", "10.1.0.1/16")
	c.randomPort(r, "in"+i, pick(r, ovn.TypePatch, ovn.TypePatch, ovn.TypeL3Gateway), "dp-lr"+i, "sin"+i, "02:00:00:00:01:01 "+subnet+" 2001:db8:"+i+"::1/64")
	c.randomPort(r, "sin"+i, ovn.TypePatch, "dp-ls"+i, "in"+i, "router")
	c.randomSwitch(r, i)
	for k := range 3 {
		name := fmt.Sprintf("vm%s%d", i, k)
		c.randomPort(r, name, pick(r, ovn.TypeVIF, ovn.TypeVIF, ovn.TypeVirtual, "localport"), "dp-ls"+i, "",
			fmt.Sprintf("02:00:00:00:02:02 10.%s.0.%d 2001:db8:%s::%d", pick(r, i, "1"), 5+r.IntN(2), i, 5+k))
		vm := c["pb-"+name].(ovn.PortBinding)
		vm.Chassis = pick(r, ovn.UUID("ch-away"), "")
		c.put(vm)
	}
	c.randomAdvertised(r, i)
	c.put(ovn.LogicalRouter{UUID: ovn.UUID("lr-nb" + i), NAT: pick(r, nil, []ovn.UUID{ovn.UUID("na-" + i)}), StaticRoutes: []ovn.UUID{ovn.UUID("st-" + i)},
		Options: pick(r, nil, nil, map[string]string{optionVRFName: "vrf-1"}, map[string]string{keyVRFID: pick(r, "1", "2", "x")})},
		ovn.NAT{UUID: ovn.UUID("na-" + i), Type: pick(r, "snat", "dnat_and_snat"), ExternalIP: pick(r, "172.24.4."+i, "172.24.4.200"),
			LogicalIP: pick(r, "10."+i+".0.0/24", "10."+i+".0.5")},
		ovn.MACBinding{UUID: ovn.UUID("mb-" + i), LogicalPort: pick(r, "gw1", "gw"+i), IP: pick(r, "172.24.4.254", "2001:db8:ff::99", "fe80::1", "172.24.4."+i)},
		ovn.StaticRoute{UUID: ovn.UUID("st-" + i), IPPrefix: "0.0.0.0/0", Nexthop: pick(r, "172.24.4.254", "172.24.4.99")})
}

// randomAdvertised puts what OVN advertises of a router: its networks, hosts, static
// routes and load balancers, some of them behind a port where they do not belong.
func (c cloud) randomAdvertised(r *rand.Rand, i string) {
	for k := range 4 {
		c.put(ovn.AdvertisedRoute{UUID: ovn.UUID(fmt.Sprintf("ar-%s%d", i, k)), Datapath: ovn.UUID("dp-lr" + pick(r, i, i, i, "1")),
			LogicalPort: ovn.UUID("pb-" + pick(r, "in", "in", "gw") + i), TrackedPort: ovn.UUID(pick(r, "", "pb-vm"+i+"0", "pb-gw"+i, "pb-in"+i)),
			IPPrefix: pick(r, "10."+i+".0.0/24", "2001:db8:"+i+"::/64", "10.1.0.5", "10."+i+".0.77", "2001:db8:"+i+"::7", "192.168.0.0/16", "192.168.1.0/24",
				"198.51.100."+i, "172.24.4."+i, "172.24.4.200", "0.0.0.0/0", "10.0.0.0/8", "?")})
	}
}

func (c cloud) randomPort(r *rand.Rand, name, kind, datapath, peer string, mac ...string) {
	p := pb(name, kind, datapath, mac...)
	p.ExternalIDs, p.Options = randomExt(r), map[string]string{}
	if peer != "" && r.IntN(40) > 0 {
		p.Options["peer"] = peer
	}
	if r.IntN(60) == 0 {
		p.Datapath = "dp-ls1"
	}
	c.put(p)
}

// randomSwitch puts a switch's Northbound row.
func (c cloud) randomSwitch(r *rand.Rand, name string) {
	sw := ovn.LogicalSwitch{UUID: ovn.UUID("ls-nb" + name)}
	if r.IntN(3) == 0 {
		sw.ExternalIDs = map[string]string{keyVNI: pick(r, "1", "1", "2", "x"), keyTargets: pick(r, "", "['1:1']", "[")}
	}
	c.put(sw)
}

func randomExt(r *rand.Rand) map[string]string {
	out := map[string]string{}
	if r.IntN(8) > 0 {
		out["neutron_bgpvpn:vni"] = pick(r, "1", "1", "1", "1", "1", "2", "2", "x")
		out["neutron_bgpvpn:as"] = pick(r, "7", "7", "7", "8")
	}
	if r.IntN(6) == 0 {
		out[keyPortVNI] = pick(r, "1", "1", "2", "x")
	}
	if r.IntN(8) == 0 {
		out["sluice-expose"] = pick(r, "false", "?")
	}
	if r.IntN(6) == 0 {
		out["sluice-path"] = pick(r, "auto", "ebpf", "kernel", "?")
	}
	if r.IntN(8) == 0 {
		out["sluice-announce"] = pick(r, "hosts", "subnets", "both", "?")
	}
	return out
}
