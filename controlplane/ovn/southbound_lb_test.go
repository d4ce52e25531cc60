package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The load balancers of VMs' switches are followed with what ovn-controller found out
// about backends: in Northbound, or without a session there as ovn-northd copies them to
// Southbound.
func TestFollowerSwitchBalancers(t *testing.T) {
	for _, northbound := range []bool{true, false} {
		t.Run(fmt.Sprintf("northbound %v", northbound), func(t *testing.T) { followSwitchBalancers(t, northbound) })
	}
}

func followSwitchBalancers(t *testing.T, northbound bool) {
	l := newLab(t)
	l.provider("net0", "physnet1")
	l.tenant(1, "net0", "a2")
	l.tenant(2, "net0", "a2")
	l.sb("lsp-unbind", "vm-r1", "--", "lsp-bind", "vm-r1", "a1")
	cfg := Config{Needs: Needs{VMs: true, Clients: true, ACLs: true, LoadBalancing: true}}
	if northbound {
		cfg.Northbound = l.remote("nb")
	}
	w := l.follow(cfg)
	named := func(want ...string) {
		t.Helper()
		var got []string
		w.until("the load balancers", func() bool {
			got = nil
			w.View(func(r *Rows) {
				p, _ := r.Port("vm-r1")
				list, known := r.BalancersOn(p.Datapath)
				if !known {
					got = []string{"unknown"}
				}
				for _, b := range list {
					got = append(got, b.Name)
				}
			})
			return slices.Equal(got, want)
		})
	}
	named()

	l.nb("lb-add", "web", "10.99.0.1:80", "10.10.0.5:8080,10.10.0.6:8080", "--", "ls-lb-add", "net-r1", "web",
		"--", "set", "Load_Balancer", "web", "options:sluice-m=1021", "options:reject=true")
	l.nb("lb-add", "other", "10.99.0.2:80", "10.10.0.5:8080", "--", "ls-lb-add", "net-r2", "other")
	named("web")
	w.View(func(r *Rows) {
		p, _ := r.Port("vm-r1")
		list, _ := r.BalancersOn(p.Datapath)
		b := list[0]
		if len(b.VIPs) != 1 || b.VIPs["10.99.0.1:80"] != "10.10.0.5:8080,10.10.0.6:8080" || b.Options["sluice-m"] != "1021" || b.Options["reject"] != "true" {
			t.Errorf("%+v", b)
		}
	})

	// On both switches: another group of datapaths, and then two.
	l.nb("ls-lb-add", "net-r2", "web")
	l.nb("lb-add", "third", "[2001:db8:99::1]:80", "[2001:db8:10::5]:8080", "--", "ls-lb-add", "net-r1", "third")
	named("third", "web")

	// The networks have the same addresses: what counts is the probe of the switch's own port.
	health := func(name, vip, backend string) (out string) {
		w.View(func(r *Rows) {
			p, _ := r.Port("vm-r1")
			list, _ := r.BalancersOn(p.Datapath)
			for _, b := range list {
				if b.Name == name {
					out = r.Health(b, vip, "tcp", netip.MustParseAddrPort(backend))
				}
			}
		})
		return out
	}
	for name, row := range map[string]struct{ vip, mapping string }{
		"web":   {"10.99.0.1:80", "10.10.0.5=vm-r1:10.10.0.2"},
		"other": {"10.99.0.2:80", "10.10.0.5=vm-r2:10.10.0.2"},
		"third": {"[2001:db8:99::1]:80", `"[2001:db8:10::5]"="vm-r1:[2001:db8:10::2]"`},
	} {
		l.nb("--id=@check", "create", "Load_Balancer_Health_Check", `vip="`+row.vip+`"`, "--", "set", "Load_Balancer", name, "ip_port_mappings:"+row.mapping, "health_check=@check")
	}
	l.nb("ls-lb-del", "net-r2", "web")
	found := func(port, ip, status string) {
		rows := strings.Fields(l.sb("--bare", "--columns=_uuid", "find", "Service_Monitor", "logical_port="+port, `ip="`+ip+`"`))
		if len(rows) != 1 {
			t.Fatalf("Service_Monitor of %s, %s: %v", port, ip, l.sb("list", "Service_Monitor"))
		}
		l.sb("set", "Service_Monitor", rows[0], "status="+status)
	}
	found("vm-r1", "10.10.0.5", "offline")
	found("vm-r2", "10.10.0.5", "error")
	found("vm-r1", "2001:db8:10::5", "error")
	// ovn-northd takes the word online back: nothing says that the ports are up.
	w.until("health", func() bool {
		return health("web", "10.99.0.1:80", "10.10.0.5:8080") == "offline" && health("web", "10.99.0.1:80", "10.10.0.6:8080") == "" &&
			health("third", "[2001:db8:99::1]:80", "[2001:db8:10::5]:8080") == "error"
	})

	l.nb("set", "NB_Global", ".", "options:sluice-m=4093")
	w.until("the size of tables", func() bool {
		var size string
		w.View(func(r *Rows) { size = r.TableSize() })
		return size == "4093"
	})
	// In one transaction: ovsdb-server 3.1 may not tell that the switch has lost the second one.
	l.nb("ls-lb-del", "net-r1", "web", "--", "lb-del", "third")
	named()
	l.nb("ls-lb-add", "net-r1", "web")
	named("web")
	l.nb("lb-del", "web")
	named()
	// Probes go by an update of their own.
	w.until("no rows are left", func() (none bool) {
		w.View(func(r *Rows) { none = len(r.balancers) == 0 && len(r.monitors) == 0 })
		return none
	})
}
