package evpn_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// learned are the destinations and next hops of Southbound Learned_Route.
func (w *world) learned(cloud string) ([]string, error) {
	out, err := w.SB(w.Context(), cloud, "--format=csv", "--data=bare", "--no-headings", "--columns=ip_prefix,nexthop", "list", "Learned_Route")
	if err != nil {
		return nil, err
	}
	list := strings.Fields(strings.ReplaceAll(out, ",", " via "))
	var rows []string
	for i := 0; i+2 < len(list); i += 3 {
		rows = append(rows, strings.Join(list[i:i+3], " "))
	}
	slices.Sort(rows)
	return rows, nil
}

func (w *world) sb(cloud string, args ...string) string {
	w.Helper()
	out, err := w.SB(w.Context(), cloud, args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// learns waits until OVN has learned just these, and the router routes by them.
func (w *world) learns(cloud, router string, want ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("cloud %s learns %d routes", cloud, len(want)), func() error {
		got, err := w.learned(cloud)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("Learned_Route: %q, want %q", got, want)
		}
		flows, err := w.SB(w.Context(), cloud, "lflow-list", router)
		if err != nil {
			return err
		}
		for _, r := range want {
			prefix, via, _ := strings.Cut(r, " via ")
			if !strings.Contains(flows, "dst == "+prefix) {
				return fmt.Errorf("%s has no flow to %s by %s", router, prefix, via)
			}
		}
		return nil
	})
}

// imported is what red's router in cloud A is to learn of cloud B.
func imported(via4, via6 string, more ...string) []string {
	for _, p := range []string{"10.20.0.0/24", "10.20.0.11", "172.25.0.11"} {
		more = append(more, p+" via "+via4)
	}
	for _, p := range []string{"2001:db8:25::b", "fd00:20::/64", "fd00:20::11"} {
		more = append(more, p+" via "+via6)
	}
	return slices.Sorted(slices.Values(more))
}

// givesBack: red's router in cloud A has what the VRF imports, and needs no default
// route any more. What an operator has in the routing table stays there.
func (w *world) givesBack() {
	w.Helper()
	const operators = "203.0.113.0/24 via 172.24.0.9"
	router := lab.RouterName("red")
	const via4, via6 = "172.24.255.254", "2001:db8:24:0:ffff:ffff:ffff:ffff"
	w.learns("a", router, imported(via4, via6)...)
	w.eventually("status has the table", func() error {
		s, err := w.status("a1")
		if err == nil && !slices.ContainsFunc(s.Tables, func(t status.Table) bool { return t.Name == "learned-routes" && t.Actual == 6 }) {
			err = fmt.Errorf("tables: %+v", s.Tables)
		}
		return err
	})
	table := strings.TrimSpace(w.sb("a", "--bare", "--columns=tunnel_key", "find", "Datapath_Binding", "external_ids:name="+router))
	w.exec("a1", "ip", "route", "add", "203.0.113.0/24", "via", "172.24.0.9", "dev", "lo", "onlink", "proto", "static", "table", table)
	w.nb("a", "lr-route-del", router, "0.0.0.0/0", "--", "lr-route-del", router, "::/0")
	all := imported(via4, via6, operators)
	w.learns("a", router, all...)
	w.connected()

	w.setVNI("b", "red", "")
	w.learns("a", router, operators)
	w.setVNI("b", "red", fmt.Sprint(vniRed))
	w.learns("a", router, all...)
	w.connected()
	if nightly.On() {
		w.learnedOverRestart(router, all)
		// The operator's route is on a1 alone.
		w.moveGateways("a2")
		w.learns("a", router, imported(via4, via6)...)
		w.connected()
		w.moveGateways("a1")
		w.learns("a", router, all...)
		w.connected()
	}
	w.exec("a1", "ip", "route", "del", "203.0.113.0/24", "table", table, "proto", "static")
}

// learnedOverRestart: OVN has the routes all the time.
func (w *world) learnedOverRestart(router string, want []string) {
	w.Helper()
	w.kill("a1", "sluiced")
	w.learns("a", router, want...)
	streams := w.redStreams()
	w.startAgain("a1", "sluiced")
	for range 100 {
		if got, err := w.learned("a"); err != nil || !slices.Equal(got, want) {
			w.Fatalf("Learned_Route: %q, %v; want %q", got, err, want)
		}
	}
	w.ready("a1")
	w.learns("a", router, want...)
	w.connected()
	for _, s := range streams {
		if sent, lost := s.stop(); sent == 0 || lost > 0 {
			w.Errorf("%s: %d of %d packets lost", s.name, lost, sent)
		}
	}
}
