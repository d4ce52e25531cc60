package ovn

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFollowerNorthbound: NAT rows and routes of this node's routers, and no
// other's, and the router is dirty when they change.
func TestFollowerNorthbound(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.tenant(2, "public", "a2")
	l.nb("lr-nat-add", "r2", "snat", "172.24.4.2", "10.10.0.0/24")
	w := l.follow(Config{Northbound: l.remote("nb")})
	nat := func() (rows []NAT, known bool) {
		w.View(func(r *Rows) {
			if p, ok := r.Port("gw-r1"); ok {
				rows, known = r.NATOf(p.Datapath)
			}
		})
		return rows, known
	}
	w.until("no NAT rows", func() bool { rows, known := nat(); return known && len(rows) == 0 })
	w.mu.Lock()
	clear(w.dirty)
	w.mu.Unlock()
	l.nb("lr-nat-add", "r1", "snat", "172.24.4.1", "10.10.0.0/24", "--", "lr-route-add", "r1", "0.0.0.0/0", "172.24.4.254")
	w.until("the NAT row", func() bool {
		rows, known := nat()
		return known && len(rows) == 1 && rows[0].LogicalIP == "10.10.0.0/24" && rows[0].ExternalIP == "172.24.4.1"
	})
	w.View(func(r *Rows) {
		p, _ := r.Port("gw-r1")
		if routes, known := r.StaticRoutesOf(p.Datapath); !known || len(routes) != 1 || routes[0].Nexthop != "172.24.4.254" {
			t.Errorf("static routes %v, known %v", routes, known)
		}
		if len(r.nat) != 1 || len(r.routers) != 1 {
			t.Errorf("%d NAT rows and %d routers are held, want 1 and 1", len(r.nat), len(r.routers))
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty["r1"] || w.dirty["r2"] {
		t.Errorf("dirty routers %v, want r1 alone", w.dirty)
	}
}

// TestFollowerNorthboundReplaced: a Northbound session that takes another's place
// leaves no row behind that is gone.
func TestFollowerNorthboundReplaced(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.nb("lr-nat-add", "r1", "snat", "172.24.4.1", "10.10.0.0/24")
	w := l.follow(Config{Northbound: l.remote("nb")})
	names := func() (out []string) {
		w.View(func(r *Rows) {
			for _, n := range r.nat {
				out = append(out, n.LogicalIP)
			}
		})
		return out
	}
	w.until("the start", func() bool { return slices.Equal(names(), []string{"10.10.0.0/24"}) })
	w.Follower.mu.Lock()
	w.Follower.rows.Apply([]Change{Set(NAT{UUID: "gone", LogicalIP: "192.0.2.1"})})
	w.Follower.nb.setting = setting{} // as if its certificate were another one now
	w.Follower.mu.Unlock()
	l.vs("set", "Open_vSwitch", ".", "external_ids:x=y")
	w.until("the new session's rows alone", func() bool { return slices.Equal(names(), []string{"10.10.0.0/24"}) })
	l.nb("lr-nat-add", "r1", "snat", "172.24.4.1", "10.11.0.0/24")
	w.until("what it follows", func() bool { return len(names()) == 2 })
}

// TestFollowerMeanwhile: while another Southbound server is awaited, its database
// is told to be out of sync, and the rows of the others are those of the routers
// known so far, and are followed.
func TestFollowerMeanwhile(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.nb("lr-nat-add", "r1", "snat", "172.24.4.1", "10.10.0.0/24")
	w := l.follow(Config{Northbound: l.remote("nb")})
	var router UUID
	nat := func() (n int) {
		w.View(func(r *Rows) {
			if rows, known := r.NATOf(router); known {
				n = len(rows)
			}
		})
		return n
	}
	w.until("the start", func() bool {
		w.View(func(r *Rows) { p, _ := r.Port("gw-r1"); router = p.Datapath })
		return nat() == 1
	})
	told := func() InSync {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.last
	}
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote="+l.remote("nowhere"))
	l.waitFor("the event of the loss", func() bool { s := told(); return !s.SB && s.VSwitch && s.NB })
	w.mu.Lock()
	clear(w.dirty)
	w.mu.Unlock()
	l.nb("--wait=none", "lr-nat-add", "r1", "dnat_and_snat", "172.24.4.9", "10.10.0.5")
	l.waitFor("a NAT row more", func() bool { return nat() == 2 })
	l.waitFor("its event", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.dirty["r1"]
	})
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet1:br-other")
	l.waitFor("another mapping", func() (ok bool) {
		w.View(func(r *Rows) { b, _ := r.BridgeOf("physnet1"); ok = b == "br-other" })
		return ok
	})
	if got := nat(); got != 2 {
		t.Errorf("%d NAT rows, want 2", got)
	}
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote="+l.remote("sb"))
	w.until("the return", func() bool { return nat() == 2 })
}

// A weight is held beside the row: the row's owner may write its options as a whole, and what
// others hold meanwhile stays.
func TestHeldWeights(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.nb("create", "load_balancer", "name=web", `vips:"10.99.0.1:80"="10.10.0.5:8080,10.10.0.6:8080"`, "options:reject=true")
	l.nb("lr-lb-add", "r1", "web")
	l.nb("set", "nb_global", ".", "options:mac_prefix=0a:00:00")
	w := l.follow(Config{Northbound: l.remote("nb"), Needs: Needs{LoadBalancing: true}})
	var row LoadBalancer
	until := func(what, held, option string) {
		t.Helper()
		w.until(what, func() (ok bool) {
			w.View(func(r *Rows) {
				list := r.BalancersNamed("web")
				if len(list) != 1 {
					return
				}
				row = list[0]
				ok = r.Held(row) == held && row.Options["sluice-weights"] == option
			})
			return ok
		})
	}
	drain := func(backend, weight, option string) {
		t.Helper()
		key := HeldWeightKey(row.UUID, backend)
		words := []string{"remove", "nb_global", ".", "options", strconv.Quote(key)}
		if weight != "" {
			words = []string{"set", "nb_global", ".", "options:" + strconv.Quote(key) + "=" + weight}
		}
		if words = append(words, "--"); option == "" {
			words = append(words, "remove", "load_balancer", "web", "options", "sluice-weights")
		} else {
			words = append(words, "set", "load_balancer", "web", "options:sluice-weights="+strconv.Quote(option))
		}
		l.nb(words...)
	}
	until("the row", "", "")
	drain("10.10.0.5:8080", "0", "10.10.0.5:8080=0")
	until("one is drained", "10.10.0.5:8080=0", "10.10.0.5:8080=0")
	l.nb("set", "load_balancer", "web", `options={affinity_timeout="360"}`)
	w.until("the owner's options", func() (ok bool) {
		w.View(func(r *Rows) { ok = r.BalancersNamed("web")[0].Options["affinity_timeout"] == "360" })
		return ok
	})
	until("one is drained still", "10.10.0.5:8080=0", "")
	drain("10.10.0.6:8080", "0", "10.10.0.6:8080=0")
	until("both are drained", "10.10.0.5:8080=0,10.10.0.6:8080=0", "10.10.0.6:8080=0")
	drain("10.10.0.5:8080", "", "10.10.0.6:8080=0")
	until("one is taken back", "10.10.0.6:8080=0", "10.10.0.6:8080=0")
	drain("10.10.0.6:8080", "", "")
	until("both are taken back", "", "")
	if options := l.nb("get", "nb_global", ".", "options"); strings.Contains(options, "sluice") || !strings.Contains(options, "mac_prefix") {
		t.Errorf("NB_Global.options are %s", options)
	}
}
