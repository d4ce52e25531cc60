package loadbalancer_test

import (
	"context"
	"encoding/json"
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

// hide has the backends' network exposed no more, until the test ends.
func (w *world) hide() {
	w.Helper()
	port, key := lab.InterfaceSwitchPort("red", "net"), `neutron_bgpvpn\:vni`
	vni := strings.TrimSpace(w.nb("get", "Logical_Switch_Port", port, "external_ids:"+key))
	w.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", "set", "Logical_Switch_Port", port, "external_ids:"+key+"="+vni); err != nil {
			w.Error(err)
		}
	})
	w.nb("remove", "Logical_Switch_Port", port, "external_ids", key)
	for _, direct := range []string{"10.10.0.21", "fd00:10::21"} {
		w.eventually(fmt.Sprintf("nobody reaches %s", direct), func() error {
			at := intent.FormatEndpoint(netip.MustParseAddr(direct), backend.HTTPPort)
			out, err := w.Exec(w.Context(), "c-fabric", "curl", "-gsS", "--max-time", "1", "http://"+at+"/")
			if err == nil {
				return fmt.Errorf("it answers: %s", out)
			}
			return nil
		})
	}
}

// lingering is how many rows of a1 stay for flows alone. Nothing else is to be done there.
func (w *world) lingering() (map[string]int, error) {
	out, err := w.Exec(w.Context(), "a1", w.sluicectl(), "diff")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	var s status.Status
	out, err = w.Exec(w.Context(), "a1", w.sluicectl(), "-o", "json", "status")
	if err = errors.Join(err, json.Unmarshal([]byte(out), &s)); err != nil {
		return nil, err
	}
	rows := map[string]int{}
	for _, t := range s.Tables {
		if t.Wanted == nil || *t.Wanted != t.Actual || t.Held != "" {
			return nil, fmt.Errorf("table %+v", t)
		}
		if t.Lingering > 0 {
			rows[t.Name] = t.Lingering
		}
	}
	return rows, nil
}

// Connections to backends whose network is not exposed go on when their backend is taken out,
// when sluiced restarts, and when OVN takes the VIP over, and back.
func TestHiddenConnectionsGoOn(t *testing.T) {
	w := shared(t)
	addresses := []netip.Addr{netip.MustParseAddr("10.99.0.31"), netip.MustParseAddr("fd00:99::31")}
	all := map[netip.Addr]*streams{}
	check := func() {
		t.Helper()
		for _, s := range all {
			s.check()
		}
	}
	rows := func(what string, n int) {
		t.Helper()
		w.eventually(fmt.Sprintf("%d ways stay %s", n, what), func() error {
			got, err := w.lingering()
			if err == nil && (got["backend-routes"] != n || got["steering"] != n) {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
	for _, vip := range addresses {
		w.web(vip)
	}
	w.hide()
	before, err := w.lingering()
	if err != nil || len(before) > 0 {
		t.Fatalf("%v, %v", before, err)
	}
	for _, vip := range addresses {
		all[vip] = w.streams("c-fabric", vip, 15)
		if n := w.known("a1", vip); n < 15 {
			t.Fatalf("eBPF knows %d flows to %s", n, vip)
		}
		w.backends(vip, endpoints(vip, backend.HTTPPort)[1:])
	}
	check()
	rows("without be1", 2)
	p, err := w.Process("a1", "sluiced")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	w.sluiced("a1", w.configuration())
	rows("after a start", 2)
	check()
	for _, vip := range addresses {
		w.option("tcp", intent.FormatEndpoint(vip, vipHTTP), "sluice-path", "ovn")
	}
	rows("with OVN's VIPs", 2*lab.Backends)
	w.nb("--wait=hv", "sync")
	check()
	for _, vip := range addresses {
		w.option("tcp", intent.FormatEndpoint(vip, vipHTTP), "sluice-path", "auto")
	}
	rows("with eBPF's VIPs", 2)
	check()
}

// Backends are served whether their network is exposed or not: the VIP answers, and nothing
// else of them is reached.
func TestHiddenBackends(t *testing.T) {
	w := shared(t)
	vips, http, udp := allVIPs()
	w.add("tcp", http)
	w.add("udp", udp)
	w.hide()
	for _, a := range vips {
		for _, protocol := range []string{"tcp", "udp"} {
			before := w.known("a1", a)
			w.answered("c-fabric", protocol, a)
			seen := map[string]int{}
			for range 20 {
				name, from, err := w.ask("c-fabric", protocol, a)
				if err != nil {
					t.Fatal(err)
				}
				if seen[name]++; from.Addr() != clientAddress(a) {
					t.Errorf("%s was asked by %s", name, from)
				}
			}
			if len(seen) < 3 || w.known("a1", a) < before+20 {
				t.Errorf("%s, %s: answered by %v, and eBPF knows %d flows, %d before", a, protocol, seen, w.known("a1", a), before)
			}
		}
	}
}
