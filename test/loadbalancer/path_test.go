package loadbalancer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// fabric is the client whose packets come by the fabric; a1 has the gateway port.
var fabric = asking{"c-fabric", "a1", "net", [2]netip.Addr{netip.MustParseAddr("10.20.0.31"), netip.MustParseAddr("fd00:20::31")}}

// address is the client's of the family of an address.
func (a asking) address(of netip.Addr) netip.Addr {
	if of.Is4() {
		return a.addresses[0]
	}
	return a.addresses[1]
}

// spread is what a client sees of a VIP, whatever serves it: several backends answer, and
// they see who asks.
func (w *world) spread(client asking, protocol string, vip netip.Addr) []answer {
	w.Helper()
	list, err := w.asks(client.name, protocol, vip, requests)
	if err != nil {
		w.Fatal(err)
	}
	seen := map[string]int{}
	for _, got := range list {
		seen[got.name]++
		if want := client.address(vip); got.from.Addr() != want {
			w.Errorf("%s was asked by %s, want %s", got.name, got.from, want)
		}
	}
	if len(seen) < 3 {
		w.Errorf("answered by %v", seen)
	}
	return list
}

// byOVN leaves the VIPs of load balancers that onSwitches has made to OVN.
func (w *world) byOVN(protocol string, vips map[string][]string) {
	w.Helper()
	for vip := range vips {
		w.option(protocol, vip, "sluice-path", "ovn")
	}
}

// Clients see of a VIP that OVN balances what they see of one that eBPF does: the same table
// as that of TestVIPFromFabric and TestVIPFromVMs. TestNeighborOfVIPByOVN has what OVN cannot.
func TestVIPByOVN(t *testing.T) {
	w := shared(t)
	vips := []netip.Addr{netip.MustParseAddr("10.99.0.60"), netip.MustParseAddr("fd00:99::60"), netip.MustParseAddr("10.10.0.60"), netip.MustParseAddr("fd00:10::60")}
	http, udp := servedAt(vips...)
	w.onSwitches("tcp", http)
	w.onSwitches("udp", udp)
	w.byOVN("tcp", http)
	w.byOVN("udp", udp)
	for _, node := range []string{"a1", "a2", "a3"} {
		w.eventually(node+" leaves the VIPs to OVN", func() error {
			list, err := w.vips(node)
			// Of the switches with VMs, and of the VRF on its gateways.
			want := map[string]int{"a1": 4 * len(vips), "a2": 4 * len(vips), "a3": 2 * len(vips)}[node]
			if len(list) != want {
				err = errors.Join(err, fmt.Errorf("%d VIPs, want %d", len(list), want))
			}
			for _, v := range list {
				if v.Path != "ovn" || v.Reason != reason.PathConfigured {
					err = errors.Join(err, fmt.Errorf("%s: %s, %s", intent.FormatEndpoint(v.Address, v.Port), v.Path, v.Reason))
				}
			}
			return err
		})
	}
	w.nb("--wait=hv", "sync")
	for _, client := range slices.Concat([]asking{fabric}, vms) {
		for _, protocol := range []string{"tcp", "udp"} {
			for _, a := range vips {
				t.Run(fmt.Sprintf("%s %s of %s", protocol, a, client.name), func(t *testing.T) {
					w := &world{T: t, Lab: w.Lab}
					w.answered(client.name, protocol, a)
					w.spread(client, protocol, a)
				})
			}
		}
	}
	for _, node := range []string{"a1", "a2", "a3"} {
		for _, s := range w.sessions(node) {
			if slices.Contains(vips, s.VIP.Addr()) {
				t.Errorf("%s: eBPF balances %+v", node, s)
			}
		}
	}
}

// OVN alone, without Sluice on taps, cannot do one thing of that table: a VIP in the VMs' own
// network, of a load balancer that hangs on their switch and on no router, has nobody who tells its
// MAC address. Routers do, of their own load balancers; Sluice does on taps, also for VIPs of OVN's.
func TestNeighborOfVIPByOVN(t *testing.T) {
	w := shared(t)
	m := vms[0]
	vips := []struct {
		addr     string
		onRouter bool
		answers  bool // by OVN alone
	}{
		{"10.99.0.62", false, true}, {"fd00:99::62", false, true},
		{"10.10.0.62", true, true}, {"fd00:10::62", true, true},
		{"10.10.0.63", false, false}, {"fd00:10::63", false, false},
	}
	for _, v := range vips {
		vip := netip.MustParseAddr(v.addr)
		at := intent.FormatEndpoint(vip, vipHTTP)
		w.onSwitches("tcp", map[string][]string{at: endpoints(vip, backend.HTTPPort)})
		w.option("tcp", at, "sluice-path", "ovn")
		if !v.onRouter {
			w.nb("lr-lb-del", router, "lb tcp "+at)
		}
	}
	for _, v := range vips {
		vip := netip.MustParseAddr(v.addr)
		w.pathFor(m, vip, "ovn", lab.Backends)
		w.eventually(v.addr+" answers, with Sluice on taps", func() error {
			_, _, err := w.ask(m.name, "tcp", vip)
			return err
		})
	}
	w.configured(m.node, w.configuration("  clients: false\n"))
	pins := owned.ClientPins(w.node(m.node).BPFFS)
	w.eventually("nothing of it is left", func() error {
		if _, err := os.Stat(pins); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", pins, err)
		}
		return nil
	})
	if _, err := w.Exec(w.Context(), m.name, "ip", "neigh", "flush", "all"); err != nil {
		t.Fatal(err)
	}
	for _, v := range vips {
		vip := netip.MustParseAddr(v.addr)
		if v.answers {
			w.eventually(v.addr+" answers, by OVN alone", func() error {
				_, _, err := w.ask(m.name, "tcp", vip)
				return err
			})
			continue
		}
		out, err := w.Exec(w.Context(), m.name, "sh", "-c", fmt.Sprintf("ping -n -c1 -W1 %[1]s >/dev/null; ip neigh show %[1]s", vip))
		if err != nil || strings.Contains(out, "lladdr") {
			t.Errorf("OVN tells the MAC address of %s, which this test has it not do: %s (%v)", vip, out, err)
		}
	}
}
