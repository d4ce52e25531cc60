package octavia

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// edits are what others may do to what load balancers stand on. n is a network 1 to 3 and router 1 or
// 2; what is not there is made, and what is there is taken away.
var edits = map[string]func(tx *northbound.Tx, router, n int){
	"interface": func(tx *northbound.Tx, router, n int) {
		togglePort(tx, router, n)
		toggleSwitchPort(tx, router, n)
	},
	"router port alone": togglePort,
	"switch port alone": toggleSwitchPort,
	"type of a switch port": func(tx *northbound.Tx, router, n int) {
		if lsp, is := northbound.Get[*nb.LogicalSwitchPort](tx, uuidOf(100*router+2*n+1), "type"); is {
			lsp.Type = map[string]string{"": "router"}[lsp.Type]
			tx.Update(lsp, "type")
		}
	},
	"switch of a switch port": func(tx *northbound.Tx, router, n int) {
		id := uuidOf(100*router + 2*n + 1)
		if _, is := northbound.Get[*nb.LogicalSwitchPort](tx, id); !is {
			return
		}
		for _, i := range []int{n, n%3 + 1} { // it is on one of them
			ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(i), "ports")
			ls.Ports = toggled(ls.Ports, id)
			tx.Update(ls, "ports")
		}
	},
	"peer of a switch port": func(tx *northbound.Tx, router, n int) {
		if lsp, is := northbound.Get[*nb.LogicalSwitchPort](tx, uuidOf(100*router+2*n+1), "options"); is {
			own := fmt.Sprintf("lrp-%d-%d", router, n)
			lsp.Options = map[string]string{"router-port": map[string]string{own: fmt.Sprintf("lrp-%d-%d", 3-router, n)}[lsp.Options["router-port"]]}
			if lsp.Options["router-port"] == "" {
				lsp.Options["router-port"] = own
			}
			tx.Update(lsp, "options")
		}
	},
	"networks of a router port": func(tx *northbound.Tx, router, n int) {
		if lrp, is := northbound.Get[*nb.LogicalRouterPort](tx, uuidOf(100*router+2*n), "networks"); is {
			lrp.Networks = []string{[]string{fmt.Sprintf("10.0.%d.%d/24", n, router), "172.16.0.1/24", "fd00:1::1/64"}[(len(lrp.Networks[0])+n)%3]}
			tx.Update(lrp, "networks")
		}
	},
	"gateway": func(tx *northbound.Tx, router, n int) {
		if lrp, is := northbound.Get[*nb.LogicalRouterPort](tx, uuidOf(100*router+2*n), "external_ids"); is {
			lrp.ExternalIDs = map[string]string{"neutron:is_ext_gw": map[string]string{"True": "False"}[lrp.ExternalIDs["neutron:is_ext_gw"]]}
			if lrp.ExternalIDs["neutron:is_ext_gw"] == "" {
				lrp.ExternalIDs["neutron:is_ext_gw"] = "True"
			}
			tx.Update(lrp, "external_ids")
		}
	},
	"name of a router": func(tx *northbound.Tx, router, _ int) {
		if lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "name"); is {
			lr.Name = map[string]string{fmt.Sprintf("R%d", router): fmt.Sprintf("X%d", router)}[lr.Name]
			if lr.Name == "" {
				lr.Name = fmt.Sprintf("R%d", router)
			}
			tx.Update(lr, "name")
		}
	},
	"name of a switch": func(tx *northbound.Tx, _, n int) {
		ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(n), "name")
		if ls.Name == fmt.Sprintf("N%d", n) {
			ls.Name = fmt.Sprintf("Y%d", n)
		} else {
			ls.Name = fmt.Sprintf("N%d", n)
		}
		tx.Update(ls, "name")
	},
	"router": func(tx *northbound.Tx, router, _ int) {
		if lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router)); is {
			tx.Delete(lr)
		} else {
			tx.Insert(&nb.LogicalRouter{UUID: uuidOf(100 * router), Name: fmt.Sprintf("R%d", router)})
		}
	},
	"floating IP": func(tx *northbound.Tx, router, n int) {
		if lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "nat"); is {
			id := uuidOf(1000*router + n)
			if lr.Nat = toggled(lr.Nat, id); slices.Contains(lr.Nat, id) {
				row := &nb.NAT{UUID: id, Type: "dnat_and_snat", ExternalIP: fmt.Sprintf("172.24.%d.%d", router, n), LogicalIP: fmt.Sprintf("10.0.%d.10", n)}
				if router == 1 {
					row.LogicalPort = new(uuidOf(60 + n))
				}
				tx.Insert(row)
			}
			tx.Update(lr, "nat")
		}
	},
	"port of a VIP": func(tx *northbound.Tx, _, n int) {
		network.RemovePort(tx, uuidOf(60+n), PortName(fmt.Sprintf("lb%d", n)))
	},
	"port of a VM": func(tx *northbound.Tx, _, n int) {
		ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(n), "ports")
		if ls.Ports = toggled(ls.Ports, uuidOf(5000+n)); slices.Contains(ls.Ports, uuidOf(5000+n)) {
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(5000 + n), Name: fmt.Sprintf("vm-%d", n)})
		}
		tx.Update(ls, "ports")
	},
	"reference of a switch": func(tx *northbound.Tx, router, n int) {
		ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(n), "load_balancer")
		ls.LoadBalancer = toggled(ls.LoadBalancer, uuidOf(10+router))
		tx.Update(ls, "load_balancer")
	},
	"reference of a router": func(tx *northbound.Tx, router, n int) {
		if lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "load_balancer"); is {
			lr.LoadBalancer = toggled(lr.LoadBalancer, uuidOf(10+n))
			tx.Update(lr, "load_balancer")
		}
	},
	"lr_ref": func(tx *northbound.Tx, router, n int) {
		lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(10+n), "external_ids")
		lb.ExternalIDs["lr_ref"] = fmt.Sprintf("R%d", router)
		tx.Update(lb, "external_ids")
	},
}

// mend has a network at a router as cloud.router has it.
func mend(tx *northbound.Tx, router, n int) {
	lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "ports")
	if !is {
		lr = &nb.LogicalRouter{UUID: uuidOf(100 * router)}
		tx.Insert(lr)
	}
	lr.Name = fmt.Sprintf("R%d", router)
	tx.Update(lr, "name")
	tx.Update(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n)}, "name")
	if !slices.Contains(lr.Ports, uuidOf(100*router+2*n)) {
		togglePort(tx, router, n)
	}
	id, to := uuidOf(100*router+2*n+1), fmt.Sprintf("lrp-%d-%d", router, n)
	if _, is := northbound.Get[*nb.LogicalSwitchPort](tx, id); !is {
		toggleSwitchPort(tx, router, n)
	}
	tx.Update(&nb.LogicalSwitchPort{UUID: id, Type: "router", Options: map[string]string{"router-port": to}}, "type", "options")
	tx.Update(&nb.LogicalRouterPort{UUID: uuidOf(100*router + 2*n), Networks: []string{fmt.Sprintf("10.0.%d.%d/24", n, router)}}, "networks", "external_ids")
}

func toggled(list []string, member string) []string {
	if i := slices.Index(list, member); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return append(list, member)
}

// togglePort takes a port out of a router, or makes it there.
func togglePort(tx *northbound.Tx, router, n int) {
	lr, is := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "ports")
	if !is {
		return
	}
	id := uuidOf(100*router + 2*n)
	if lr.Ports = toggled(lr.Ports, id); slices.Contains(lr.Ports, id) {
		tx.Insert(&nb.LogicalRouterPort{UUID: id, Name: fmt.Sprintf("lrp-%d-%d", router, n), MAC: "02:00:00:00:09:09", Networks: []string{fmt.Sprintf("10.0.%d.%d/24", n, router)}})
	}
	tx.Update(lr, "ports")
}

// toggleSwitchPort is the same of the port of a switch that leads to a router.
func toggleSwitchPort(tx *northbound.Tx, router, n int) {
	id, to := uuidOf(100*router+2*n+1), fmt.Sprintf("lrp-%d-%d", router, n)
	at := uuidOf(n)
	if on := northbound.Find(tx, northbound.SwitchOfPort, id); len(on) > 0 {
		at = on[0].UUID
	}
	ls, _ := northbound.Get[*nb.LogicalSwitch](tx, at, "ports")
	if ls.Ports = toggled(ls.Ports, id); slices.Contains(ls.Ports, id) {
		tx.Insert(&nb.LogicalSwitchPort{UUID: id, Name: "to-" + to, Type: "router", Options: map[string]string{"router-port": to}})
	}
	tx.Update(ls, "ports")
}

// A reactor that looks at what may have changed leaves nothing that one which looks at all would
// repair, whatever others do.
func TestLooksLeaveNothing(t *testing.T) { both(t, testLooksLeaveNothing) }

func testLooksLeaveNothing(t *testing.T, raw []byte) {
	steps := 250
	if nightly.On() {
		steps = 5000
	}
	random := rand.New(rand.NewPCG(nightly.Seed(t, 27), 0))
	c := newCloud(t, raw)
	c.router(1, 1, 2)
	c.router(2, 1, 3)
	c.balancer(1, 1, 2)
	c.balancer(2)
	c.balancer(3, 3)
	c.commit(func(tx *northbound.Tx) error {
		for n := 1; n <= 2; n++ { // the API made the ports of two VIPs
			b, err := Load(tx, fmt.Sprintf("lb%d", n))
			if err != nil {
				return err
			}
			b.SetAttributes(Attributes{Name: "own", OwnPort: true, Subnet: network.Subnets(tx, c.network(tx, n))[0].ID})
			b.Save()
		}
		b := New(tx, "lb6", uuidOf(16), c.network(tx, 1), rowform.VIP{Address: netip.MustParseAddr("fd00:1::10"), Port: "port-6"})
		b.SetAttributes(Attributes{Name: "lb6"})
		b.Save()
		return nil
	})
	names := make([]string, 0, len(edits))
	for name := range edits {
		names = append(names, name)
	}
	slices.Sort(names)
	r := c.reactor()
	c.react(r)
	repaired := uint64(0)
	for i := range steps {
		var done []string
		var last []func(tx *northbound.Tx) error
		for range 1 + random.IntN(3) {
			name, router, n := names[random.IntN(len(names))], 1+random.IntN(2), 1+random.IntN(3)
			edit := edits[name]
			if random.IntN(3) == 0 { // else little is connected before long
				name, edit = "mend", mend
			}
			done = append(done, fmt.Sprintf("%s %d %d", name, router, n))
			last = append(last, func(tx *northbound.Tx) error { edit(tx, router, n); return nil })
		}
		wrote := uint64(0)
		edit := func() {
			begun := c.store.Stats().Commits
			for _, f := range last {
				c.commit(f)
			}
			wrote += c.store.Stats().Commits - begun
		}
		before := c.store.Stats().Commits
		edit()
		if random.IntN(2) == 0 { // the same again before the reactor has looked at what it wrote
			c.look(r, nil)
			edit()
			done = append(done, "twice")
		}
		c.react(r)
		settled := c.store.Stats().Commits
		repaired += settled - before - wrote
		if c.react(NewReactor(c.store, slog.New(slog.DiscardHandler))); c.store.Stats().Commits != settled {
			t.Fatalf("step %d: after %q a look at all load balancers repaired %d", i, done, c.store.Stats().Commits-settled)
		}
	}
	if repaired < uint64(steps)/2 {
		t.Errorf("%d repairs in %d steps: the edits change too little", repaired, steps)
	}
}

// What does not matter to load balancers has none of them compared, and what matters to some has
// these compared.
func TestLooksAreFew(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		c := newCloud(t, raw)
		c.router(1, 1, 2)
		c.router(2, 3)
		for n := 1; n <= 3; n++ {
			c.balancer(n)
		}
		r := c.reactor()
		c.react(r)
		for _, e := range []struct {
			edit      string
			router, n int
			looked    int
		}{
			{"port of a VM", 1, 1, 0},
			{"port of a VM", 1, 1, 0},
			{"floating IP", 1, 3, 2},           // one that it has at its port, and the same row as written
			{"reference of a switch", 1, 3, 2}, // lb1, taken off again
			{"interface", 2, 2, 4},             // lb2 and lb3, and what was written
		} {
			before := r.looked
			c.commit(func(tx *northbound.Tx) error { edits[e.edit](tx, e.router, e.n); return nil })
			c.react(r)
			if n := r.looked - before; n != e.looked {
				t.Errorf("%s: %d looks, want %d", e.edit, n, e.looked)
			}
		}
	})
}
