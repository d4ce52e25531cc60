package ovn

import (
	"slices"
	"testing"
)

// Load balancers of groups are those of the router and of the switch that the groups hang on, as
// groups and their members come and go; each is there once, also if it hangs there itself.
func TestFollowerGroups(t *testing.T) {
	l := newLab(t)
	l.provider("net0", "physnet1")
	l.tenant(1, "net0", "a1", "a2")
	l.sb("lsp-unbind", "vm-r1", "--", "lsp-bind", "vm-r1", "a1")
	w := l.follow(Config{Northbound: l.remote("nb"), Needs: Needs{VMs: true, Clients: true, ACLs: true, LoadBalancing: true}})
	named := func(onRouter, onSwitch []string) {
		t.Helper()
		names := func(list []LoadBalancer, known bool) (out []string) {
			for _, b := range list {
				out = append(out, b.Name)
			}
			if !known {
				out = append(out, "unknown")
			}
			return out
		}
		var got [2][]string
		w.until("the load balancers", func() bool {
			w.View(func(r *Rows) {
				in, _ := r.Port("in-r1")
				vm, _ := r.Port("vm-r1")
				got = [2][]string{names(r.BalancersOf(in.Datapath)), names(r.BalancersOn(vm.Datapath))}
			})
			return slices.Equal(got[0], onRouter) && slices.Equal(got[1], onSwitch)
		})
	}
	id := func(table, name string) string {
		return l.nb("--bare", "--columns=_uuid", "find", table, "name="+name)
	}
	named(nil, nil)

	for _, name := range []string{"one", "two", "three"} {
		l.nb("lb-add", name, "10.99.0.1:80", "10.10.0.5:8080")
	}
	l.nb("--id=@g", "create", "Load_Balancer_Group", "name=both", "load_balancer="+id("Load_Balancer", "one"),
		"--", "add", "Logical_Router", "r1", "load_balancer_group", "@g", "--", "add", "Logical_Switch", "net-r1", "load_balancer_group", "@g")
	named([]string{"one"}, []string{"one"})
	l.nb("lr-lb-add", "r1", "one")
	l.nb("add", "Load_Balancer_Group", "both", "load_balancer", id("Load_Balancer", "two"))
	named([]string{"one", "two"}, []string{"one", "two"})

	// A second group, of the switch alone, has one of the same.
	l.nb("--id=@g", "create", "Load_Balancer_Group", "name=second", "load_balancer="+id("Load_Balancer", "two"), "--", "add", "Logical_Switch", "net-r1", "load_balancer_group", "@g")
	l.nb("add", "Load_Balancer_Group", "second", "load_balancer", id("Load_Balancer", "three"))
	named([]string{"one", "two"}, []string{"one", "three", "two"})
	l.nb("remove", "Load_Balancer_Group", "both", "load_balancer", id("Load_Balancer", "two"))
	named([]string{"one"}, []string{"one", "three", "two"})

	// One that is deleted leaves its groups by itself; a group that hangs nowhere does not count.
	l.nb("lb-del", "two")
	named([]string{"one"}, []string{"one", "three"})
	l.nb("clear", "Logical_Switch", "net-r1", "load_balancer_group", "--", "clear", "Logical_Router", "r1", "load_balancer_group")
	named([]string{"one"}, nil)
	l.nb("destroy", "Load_Balancer_Group", "both", "second", "--", "lb-del", "one", "--", "lb-del", "three")
	named(nil, nil)
	w.View(func(r *Rows) {
		if len(r.balancers)+len(r.lbGroups) > 0 {
			t.Errorf("rows are left: %d, %d", len(r.balancers), len(r.lbGroups))
		}
	})
}
