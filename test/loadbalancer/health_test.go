package loadbalancer_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// probe has OVN probe the backends of a VIP that add has made.
func (w *world) probe(at string) {
	w.Helper()
	name, source := "lb tcp "+at, "10.10.0.254"
	vip := netip.MustParseAddrPort(at).Addr()
	if vip.Is6() {
		source = "[fd00:10::fe]"
	}
	// On a machine that is slower than others a backend is not dead after a second.
	timeout := fmt.Sprintf("options:timeout=%.0f", lab.Patience().Minutes())
	args := []string{"--id=@check", "create", "Load_Balancer_Health_Check", fmt.Sprintf("vip=%q", at),
		"options:interval=1", timeout, "options:success_count=1", "options:failure_count=1", "--", "add", "Load_Balancer", name, "health_check", "@check"}
	for i, e := range endpoints(vip, backend.HTTPPort) {
		address := strings.TrimSuffix(e, fmt.Sprintf(":%d", backend.HTTPPort))
		args = append(args, "--", "set", "Load_Balancer", name, fmt.Sprintf("ip_port_mappings:%q=%q", address, fmt.Sprintf("be%d:%s", i+1, source)))
	}
	w.nb(args...)
}

// live counts the backends of a VIP that get new flows.
func live(v status.VIP) (n int) {
	for _, b := range v.Backends {
		if b.State == status.BackendUp {
			n++
		}
	}
	return n
}

// liveOn waits until all nodes have so many live backends of VIPs.
func (w *world) liveOn(nodes []string, want int, vips ...netip.Addr) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d backends of %v are up on %v", want, vips, nodes), func() error {
		var errs []error
		for _, vip := range vips {
			for _, node := range nodes {
				list, err := w.vips(node)
				errs = append(errs, err)
				found := false
				for _, v := range list {
					if v.Address != vip {
						continue
					}
					found = true
					if n := live(v); n != want || v.State != "ok" {
						errs = append(errs, fmt.Errorf("%d of %s in %s on %s, %s", n, vip, v.Scope(), node, v.State))
					}
				}
				if !found {
					errs = append(errs, fmt.Errorf("%s has no %s", node, vip))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// probed waits until OVN has found so many backends to be there.
func (w *world) probed(want int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d are probed", want), func() error {
		out, err := w.SB(w.Context(), "a", "--format=csv", "--no-headings", "--columns=status", "list", "Service_Monitor")
		if err != nil || strings.Count(out, "online") != want {
			return fmt.Errorf("%q (%w)", out, err)
		}
		return nil
	})
}

// A backend that does not answer OVN's probes gets no new connections; those to others go
// on, and it is back when it answers. Without any the VIP is withdrawn.
func TestHealth(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.2"), netip.MustParseAddr("fd00:99::a2")} {
		t.Run(vip.String(), func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab}
			at := intent.FormatEndpoint(vip, vipHTTP)
			w.add("tcp", map[string][]string{at: endpoints(vip, backend.HTTPPort)})
			w.probe(at)
			w.answered("c-fabric", "tcp", vip)
			w.probed(lab.Backends)
			streams := w.streams("c-fabric", vip, 10)
			for i := 1; i <= 2; i++ {
				w.stop(fmt.Sprintf("be%d", i))
			}
			w.liveOn([]string{"a1"}, lab.Backends-2, vip)
			for range 20 {
				if name, _, err := w.ask("c-fabric", "tcp", vip); err != nil || name == "be1" || name == "be2" {
					t.Errorf("a new connection was answered by %q (%v)", name, err)
				}
			}
			streams.check("be1", "be2")
			for i := 3; i <= lab.Backends; i++ {
				w.stop(fmt.Sprintf("be%d", i))
			}
			w.liveOn([]string{"a1"}, 0, vip)
			w.eventually("the VIP is withdrawn", func() error {
				out, err := w.Exec(w.Context(), "b1", w.sluicectl(), "route", "list", "--vrf", "1001")
				if err == nil && strings.Contains(out, vip.String()) {
					err = errors.New("b1 still has it")
				}
				return err
			})
			for i := 1; i <= lab.Backends; i++ {
				w.serve(fmt.Sprintf("be%d", i))
			}
			w.liveOn([]string{"a1"}, lab.Backends, vip)
			w.answered("c-fabric", "tcp", vip)
		})
	}
}

// A backend that dies takes its own connections along, of VMs and of the fabric, and no
// other; when it is back none ends.
func TestKillUnderConnections(t *testing.T) {
	w := shared(t)
	vips, nodes := []netip.Addr{netip.MustParseAddr("10.99.0.22"), netip.MustParseAddr("fd00:99::22")}, []string{"a1", "a2", "a3"}
	clients := map[string]int{"c-fabric": 60, "c-same": 20, "c-net": 20}
	var all []*streams
	for _, vip := range vips {
		w.probe(w.webOnSwitches(vip))
		w.answered("c-fabric", "tcp", vip)
	}
	w.probed(lab.Backends * len(vips))
	for _, vip := range vips {
		for client, n := range clients {
			all = append(all, w.streams(client, vip, n))
		}
	}
	check := func() {
		t.Helper()
		for _, s := range all {
			s.check("be2")
		}
	}
	w.stop("be2")
	w.liveOn(nodes, lab.Backends-1, vips...)
	check()
	for _, vip := range vips {
		for client := range clients {
			for range 20 {
				if name, _, err := w.ask(client, "tcp", vip); err != nil || name == "be2" {
					t.Errorf("a new connection of %s to %s was answered by %q (%v)", client, vip, name, err)
				}
			}
		}
	}
	w.serve("be2")
	w.liveOn(nodes, lab.Backends, vips...)
	check()
}
