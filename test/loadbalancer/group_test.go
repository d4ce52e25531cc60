package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// service is a service of Kubernetes as OVN-Kubernetes writes it: a row for each protocol, of
// both families, that hangs on routers and switches by a group.
type service struct {
	group    string
	vips     []netip.Addr
	switches []string
}

// rowOf is the name of the row of a protocol.
func (s service) rowOf(protocol string) string {
	return fmt.Sprintf("Service_default/web_%s_cluster", strings.ToUpper(protocol))
}

// create makes the row of a protocol, in no group yet.
func (s service) create(w *world, protocol string, port, backendPort uint16) {
	w.Helper()
	args := []string{"create", "Load_Balancer", "name=" + s.rowOf(protocol), "protocol=" + protocol,
		`external_ids:k8s.ovn.org/kind=Service`, `external_ids:k8s.ovn.org/owner="default/web"`,
		"options:event=false", `options:hairpin_snat_ip="169.254.0.5 fd69::5"`, "options:neighbor_responder=none", "options:reject=true", "options:skip_snat=false"}
	for _, a := range s.vips {
		args = append(args, fmt.Sprintf("vips:%q=%q", intent.FormatEndpoint(a, port), strings.Join(endpoints(a, backendPort), ",")))
	}
	w.nb(args...)
	w.forget(s.rowOf(protocol))
}

// hang makes the group, with rows that are there, on the router and the switches.
func (s service) hang(w *world, rows ...string) {
	w.Helper()
	args := []string{"--id=@group", "create", "Load_Balancer_Group", "name=" + s.group}
	for _, row := range rows {
		args = append(args, "load_balancer="+w.uuidOf(row))
	}
	w.Cleanup(s.remove(w))
	args = append(args, "--", "add", "Logical_Router", router, "load_balancer_group", "@group")
	for _, network := range s.switches {
		args = append(args, "--", "add", "Logical_Switch", lab.SwitchName("red", network), "load_balancer_group", "@group")
	}
	w.nb(args...)
}

// remove takes the group away: rows that name one keep it.
func (s service) remove(w *world) func() {
	return func() {
		args := []string{"clear", "Logical_Router", router, "load_balancer_group"}
		for _, network := range s.switches {
			args = append(args, "--", "clear", "Logical_Switch", lab.SwitchName("red", network), "load_balancer_group")
		}
		if _, err := w.NB(context.Background(), "a", append(args, "--", "--if-exists", "destroy", "Load_Balancer_Group", s.group)...); err != nil {
			w.Error(err)
		}
	}
}

// uuidOf is the _uuid of a load balancer.
func (w *world) uuidOf(name string) string {
	w.Helper()
	return strings.TrimSpace(w.nb("--bare", "--columns=_uuid", "find", "Load_Balancer", fmt.Sprintf("name=%q", name)))
}

// scopes waits until a node has the VIPs of a row in these scopes and no others.
func (w *world) scopes(node, row string, addresses int, want ...string) {
	w.Helper()
	var all []string
	for _, scope := range want {
		all = append(all, slices.Repeat([]string{scope}, addresses)...)
	}
	slices.Sort(all)
	w.eventually(fmt.Sprintf("%s has %s for %v", node, row, want), func() error {
		list, err := w.vips(node)
		var got []string
		for _, v := range list {
			if v.LoadBalancer != row {
				continue
			}
			got = append(got, v.Scope())
			if v.Path != "ebpf" || v.State != "ok" || len(v.Backends) != lab.Backends {
				err = errors.Join(err, fmt.Errorf("%+v", v))
			}
		}
		if slices.Sort(got); !slices.Equal(got, all) {
			err = errors.Join(err, fmt.Errorf("%v", got))
		}
		return err
	})
}

// Load balancers of groups are those of the routers and switches that the groups hang on, as
// groups and their members come and go.
func TestGroups(t *testing.T) {
	w := shared(t)
	s := service{"clusterLBGroup", []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::10")}, []string{"net", "other"}}
	s.create(w, "tcp", vipHTTP, backend.HTTPPort)
	s.create(w, "udp", vipUDP, backend.UDPPort)
	s.hang(w, s.rowOf("tcp"))
	vrf, net, other := "1001", "switch "+lab.SwitchName("red", "net"), "switch "+lab.SwitchName("red", "other")
	everywhere := func(row string) {
		t.Helper()
		w.scopes("a1", row, len(s.vips), vrf, net)
		w.scopes("a2", row, len(s.vips), vrf, net)
		w.scopes("a3", row, len(s.vips), other)
	}
	nowhere := func(row string) {
		t.Helper()
		for _, node := range []string{"a1", "a2", "a3"} {
			w.scopes(node, row, len(s.vips))
		}
	}
	everywhere(s.rowOf("tcp"))
	nowhere(s.rowOf("udp"))
	w.nb("add", "Load_Balancer_Group", s.group, "load_balancer", w.uuidOf(s.rowOf("udp")))
	everywhere(s.rowOf("udp"))
	for _, c := range slices.Concat([]asking{fabric}, vms) {
		for _, protocol := range []string{"tcp", "udp"} {
			for _, a := range s.vips {
				w.answered(c.name, protocol, a)
				// The one that has come last.
				got := w.spread(c, protocol, a)
				last, kind := got[len(got)-1], map[string]intent.Protocol{"tcp": intent.TCP, "udp": intent.UDP}[protocol]
				at := netip.AddrPortFrom(a, map[string]uint16{"tcp": vipHTTP, "udp": vipUDP}[protocol])
				if _, ok := w.session(c.node, kind, last.from, at); !ok {
					t.Errorf("%s has no session from %s to %s", c.node, last.from, at)
				}
			}
		}
	}
	// One leaves the group, and the group a switch.
	w.nb("remove", "Load_Balancer_Group", s.group, "load_balancer", w.uuidOf(s.rowOf("udp")))
	nowhere(s.rowOf("udp"))
	w.nb("clear", "Logical_Switch", lab.SwitchName("red", "other"), "load_balancer_group")
	w.scopes("a3", s.rowOf("tcp"), len(s.vips))
	w.scopes("a2", s.rowOf("tcp"), len(s.vips), vrf, net)
	if _, _, err := w.ask("c-same", "tcp", s.vips[0]); err != nil {
		t.Error(err)
	}
	// A row that is deleted leaves its group by itself.
	w.nb("lb-del", s.rowOf("tcp"))
	nowhere(s.rowOf("tcp"))
}
