package octavia

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

// reactor is one that looks when it is told to. It leads.
func (c cloud) reactor() *Reactor {
	c.Helper()
	for until := time.Now().Add(ovsdbtest.Timeout); !c.store.Leads(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			c.Fatal("the store does not lead")
		}
	}
	return NewReactor(c.store, slog.New(slog.DiscardHandler))
}

// react has a reactor look, and look again: then nothing is left to do.
func (c cloud) react(r *Reactor) {
	c.Helper()
	c.reactTo(r, nil)
}

// reactTo is react with what is known of members.
func (c cloud) reactTo(r *Reactor, known probes) {
	c.Helper()
	c.look(r, known)
	if n := c.look(r, known); n > 0 {
		c.Errorf("%d transactions where nothing was to be done", n)
	}
}

// look has a reactor look at what is there, and returns how many transactions it made.
func (c cloud) look(r *Reactor, known probes) uint64 {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	s, err := c.store.Barrier(ctx)
	if err != nil {
		c.Fatal(err)
	}
	before := c.store.Stats().Commits
	r.look(ctx, s, known)
	return c.store.Stats().Commits - before
}

// table is a database as its rows: of a Load_Balancer its name with all of its protocol, vips,
// options, selection_fields and external_ids, of a switch or router its name with load_balancer.
type table map[string]string

func (c cloud) table() table {
	c.Helper()
	s, err := c.store.Snapshot()
	if err != nil {
		c.Fatal(err)
	}
	out := table{}
	names := func(uuids []string) string {
		var list []string
		for _, uuid := range uuids {
			lb, _ := northbound.Get[*nb.LoadBalancer](s, uuid)
			list = append(list, lb.Name)
		}
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	for lb := range northbound.All[*nb.LoadBalancer](s) {
		protocol := "none"
		if lb.Protocol != nil {
			protocol = *lb.Protocol
		}
		out[lb.Name] = fmt.Sprintf("%s vips:%v options:%v fields:%v ids:%v", protocol, lb.Vips, lb.Options, lb.SelectionFields, lb.ExternalIDs)
	}
	for ls := range northbound.All[*nb.LogicalSwitch](s) {
		out[ls.Name] = names(ls.LoadBalancer)
	}
	for lr := range northbound.All[*nb.LogicalRouter](s) {
		out[lr.Name] = names(lr.LoadBalancer)
	}
	return out
}

// expectTable compares all rows.
func (c cloud) expectTable(when string, want table) {
	c.Helper()
	got := c.table()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != want[name] {
			c.Errorf("%s: %s is\n%s\nwant\n%s", when, name, got[name], want[name])
		}
	}
	for name := range want {
		if _, has := got[name]; !has {
			c.Errorf("%s: there is no %s", when, name)
		}
	}
}

// balancer makes a load balancer whose VIP is 10.0.N.10, with its port.
func (c cloud) balancer(n int, members ...int) {
	c.Helper()
	c.commit(func(tx *northbound.Tx) error {
		id, v := fmt.Sprintf("lb%d", n), rowform.VIP{Address: netip.AddrFrom4([4]byte{10, 0, byte(n), 10}), Port: uuidOf(60 + n)}
		network.AddPort(tx, v.Port, PortName(id), "p", network.Subnets(tx, c.network(tx, n))[0], v.Address)
		b := New(tx, id, uuidOf(10+n), c.network(tx, n), v)
		b.SetAttributes(Attributes{Name: id})
		if len(members) > 0 {
			r := b.Row("tcp", uuidOf(20+n))
			r.Pools = append(r.Pools, rowform.Pool{ID: "p", Enabled: true})
			r.Listeners = append(r.Listeners, rowform.Listener{ID: "l", Port: 82, Pool: "p", Enabled: true})
			for _, m := range members {
				addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(m), 107}), 80)
				b.AddMember(r, 0, rowform.Member{ID: fmt.Sprintf("m%d", m), Addr: addr, Subnet: fmt.Sprintf("s%d", m)}, c.network(tx, m), rowform.StatusNoMonitor)
			}
		}
		b.Save()
		return nil
	})
}

// unused is the row of a load balancer that balancer made without members.
func unused(n int, refs, routers string) string {
	if routers != "" {
		routers = "lr_ref:" + routers + " "
	}
	return fmt.Sprintf(`none vips:map[] options:map[] fields:[ip_dst ip_src tp_dst tp_src] `+
		`ids:map[enabled:True %sls_refs:%s neutron:vip:10.0.%d.10 neutron:vip_port_id:%s sluice:lb:{"v":1,"name":"lb%d"}]`, routers, refs, n, uuidOf(60+n), n)
}

// The list at the end of the source design, all rows after each step: N1 and N2 with a load balancer
// each on router R1, N3 is added, N2 is taken off. Then the same where a second router is on N1, and
// with a load balancer that has a member in N2.
func TestSeedList(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		t.Run("one router", func(t *testing.T) { testOneRouter(t, raw) })
		t.Run("two routers on N1", func(t *testing.T) { testTwoRouters(t, raw) })
		t.Run("a member in N2", func(t *testing.T) { testMemberTakenOff(t, raw) })
	})
}

// step is a change of routers by somebody else, and all rows after the reaction to it.
type step struct {
	what   string
	change func(tx *northbound.Tx) error
	want   table
}

func (c cloud) run(steps []step) {
	c.Helper()
	r := c.reactor()
	for _, s := range steps {
		if s.change != nil {
			c.commit(s.change)
		}
		c.react(r)
		c.expectTable(s.what, s.want)
	}
}

func add(router, n int) func(*northbound.Tx) error {
	return func(tx *northbound.Tx) error { return connect(tx, router, n) }
}

func takeOff(router, n int) func(*northbound.Tx) error {
	return func(tx *northbound.Tx) error { return disconnect(tx, router, n) }
}

func testOneRouter(t *testing.T, raw []byte) {
	c := newCloud(t, raw)
	c.router(1, 1, 2)
	c.balancer(1)
	c.balancer(2)
	c.run([]step{
		{"as they were made", nil, table{
			"lb1": unused(1, `{"N1": 1}`, "R1"), "lb2": unused(2, `{"N2": 1}`, "R1"),
			"N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[]", "R1": "[lb1 lb2]",
		}},
		{"N3 was added", add(1, 3), table{
			"lb1": unused(1, `{"N1": 1}`, "R1"), "lb2": unused(2, `{"N2": 1}`, "R1"),
			"N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[lb1 lb2]", "R1": "[lb1 lb2]",
		}},
		{"N2 was taken off", takeOff(1, 2), table{
			"lb1": unused(1, `{"N1": 1}`, "R1"), "lb2": unused(2, `{"N2": 1}`, ""),
			"N1": "[lb1]", "N2": "[lb2]", "N3": "[lb1]", "R1": "[lb1]",
		}},
		{"N2 was added again", add(1, 2), table{
			"lb1": unused(1, `{"N1": 1}`, "R1"), "lb2": unused(2, `{"N2": 1}`, "R1"),
			"N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[lb1 lb2]", "R1": "[lb1 lb2]",
		}},
	})
}

// The provider takes a load balancer that is there from all of N1's and R2's when R1 leaves, and
// associates one that is made with one router of the two. Here each router serves N1 by itself.
func testTwoRouters(t *testing.T, raw []byte) {
	c := newCloud(t, raw)
	c.router(1, 1, 2)
	c.router(2, 1)
	c.balancer(1)
	c.balancer(2)
	c.run([]step{
		{"as they were made", nil, table{
			"lb1": unused(1, `{"N1": 1}`, "R1,R2"), "lb2": unused(2, `{"N2": 1}`, "R1"),
			"N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[]", "R1": "[lb1 lb2]", "R2": "[lb1]",
		}},
		{"N3 was added to R2", add(2, 3), table{
			"lb1": unused(1, `{"N1": 1}`, "R1,R2"), "lb2": unused(2, `{"N2": 1}`, "R1"),
			"N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[lb1]", "R1": "[lb1 lb2]", "R2": "[lb1]",
		}},
		{"N2 was taken off R1", takeOff(1, 2), table{
			"lb1": unused(1, `{"N1": 1}`, "R1,R2"), "lb2": unused(2, `{"N2": 1}`, ""),
			"N1": "[lb1]", "N2": "[lb2]", "N3": "[lb1]", "R1": "[lb1]", "R2": "[lb1]",
		}},
		{"N1 was taken off R1", takeOff(1, 1), table{
			"lb1": unused(1, `{"N1": 1}`, "R2"), "lb2": unused(2, `{"N2": 1}`, ""),
			"N1": "[lb1]", "N2": "[lb2]", "N3": "[lb1]", "R1": "[]", "R2": "[lb1]",
		}},
		{"N1 was added to R1 again", add(1, 1), table{
			"lb1": unused(1, `{"N1": 1}`, "R2,R1"), "lb2": unused(2, `{"N2": 1}`, ""),
			"N1": "[lb1]", "N2": "[lb2]", "N3": "[lb1]", "R1": "[lb1]", "R2": "[lb1]",
		}},
		{"N1 was taken off both", func(tx *northbound.Tx) error {
			if err := disconnect(tx, 1, 1); err != nil {
				return err
			}
			return disconnect(tx, 2, 1)
		}, table{
			"lb1": unused(1, `{"N1": 1}`, ""), "lb2": unused(2, `{"N2": 1}`, ""),
			"N1": "[lb1]", "N2": "[lb2]", "N3": "[]", "R1": "[]", "R2": "[]",
		}},
	})
}

// The provider takes a load balancer with a member in N2 from its router and from its own network
// when N2 goes (record 20051). Here it stays where it is reached, and N2 keeps what it counts.
func testMemberTakenOff(t *testing.T, raw []byte) {
	c := newCloud(t, raw)
	c.router(1, 1, 2, 3)
	c.balancer(1, 1, 2)
	c.balancer(2)
	lb1 := `tcp vips:map[10.0.1.10:82:10.0.1.107:80,10.0.2.107:80] options:map[] fields:[ip_dst ip_src tp_dst tp_src] ` +
		`ids:map[enabled:True listener_l:82:pool_p lr_ref:R1 ls_refs:{"N1": 2, "N2": 1} neutron:member_status:{"m1": "NO_MONITOR", "m2": "NO_MONITOR"} ` +
		`neutron:vip:10.0.1.10 neutron:vip_port_id:` + uuidOf(61) + ` pool_p:member_m1_10.0.1.107:80_s1,member_m2_10.0.2.107:80_s2 sluice:lb:{"v":1,"name":"lb1"}]`
	c.run([]step{
		{"as they were made", nil, table{
			"lb1": lb1, "lb2": unused(2, `{"N2": 1}`, "R1"), "N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[lb1 lb2]", "R1": "[lb1 lb2]",
		}},
		{"N2 was taken off", takeOff(1, 2), table{
			"lb1": lb1, "lb2": unused(2, `{"N2": 1}`, ""), "N1": "[lb1]", "N2": "[lb1 lb2]", "N3": "[lb1]", "R1": "[lb1]",
		}},
		{"N2 was added again", add(1, 2), table{
			"lb1": lb1, "lb2": unused(2, `{"N2": 1}`, "R1"), "N1": "[lb1 lb2]", "N2": "[lb1 lb2]", "N3": "[lb1 lb2]", "R1": "[lb1 lb2]",
		}},
	})
}
