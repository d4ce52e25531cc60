package loadbalancer_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Backends are served whether their network is exposed or not: the VIP answers, and nothing
// else of them is reached.
func TestHiddenBackends(t *testing.T) {
	w := shared(t)
	vips, http, udp := allVIPs()
	w.add("tcp", http)
	w.add("udp", udp)
	port, key := lab.InterfaceSwitchPort("red", "net"), `neutron_bgpvpn\:vni`
	vni := strings.TrimSpace(w.nb("get", "Logical_Switch_Port", port, "external_ids:"+key))
	w.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", "set", "Logical_Switch_Port", port, "external_ids:"+key+"="+vni); err != nil {
			w.Error(err)
		}
	})
	w.nb("remove", "Logical_Switch_Port", port, "external_ids", key)
	for _, a := range vips {
		direct := netip.MustParseAddr("10.10.0.21")
		if a.Is6() {
			direct = netip.MustParseAddr("fd00:10::21")
		}
		w.eventually(fmt.Sprintf("nobody reaches %s", direct), func() error {
			out, err := w.Exec(w.Context(), "c-fabric", "curl", "-gsS", "--max-time", "1", "http://"+intent.FormatEndpoint(direct, backend.HTTPPort)+"/")
			if err == nil {
				return fmt.Errorf("it answers: %s", out)
			}
			return nil
		})
		for _, protocol := range []string{"tcp", "udp"} {
			before := w.known("a1", a)
			w.eventually("an answer", func() error {
				_, _, err := w.ask("c-fabric", protocol, a)
				return err
			})
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
