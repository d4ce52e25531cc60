package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// outsider is a host on the provider network, on the node of the gateway port: the network has
// no wire between nodes.
var outsider = lab.VM{Name: "outsider", Chassis: "a1", Network: "public", Addr4: netip.MustParseAddr("172.24.0.50"), Addr6: netip.MustParseAddr("2001:db8:24::50")}

// floating6 is a VIP of IPv6 on the provider network: Octavia has no floating IPs of IPv6.
var floating6 = netip.MustParseAddr("2001:db8:24::110")

// beside starts sluiced on a1 with exposure without EVPN for floating IPs, which the reflector
// is told of, until the test ends.
func (w *world) beside() {
	w.Helper()
	a1, rr := w.node("a1"), w.node("rr")
	activate := func(ctx context.Context, words string) error {
		_, err := w.Exec(ctx, "rr", "vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", lab.FabricAS),
			"-c", "address-family ipv4 unicast", "-c", fmt.Sprintf("%s %s activate", words, a1.VTEP4), "-c", "exit-address-family",
			"-c", "address-family ipv6 unicast", "-c", fmt.Sprintf("%s %s activate", words, a1.VTEP6))
		return err
	}
	if err := activate(w.Context(), "neighbor"); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := activate(context.Background(), "no neighbor"); err != nil {
			w.Error(err)
		}
	})
	w.configured("a1", strings.Replace(w.configuration("exposure: {floatingIPs: on}\n"), fmt.Sprintf("- address: %s\n", rr.VTEP4),
		fmt.Sprintf("- {address: %s, families: [evpn, ipv4]}\n    - {address: \"%s\", families: [ipv6]}\n", rr.VTEP4, rr.VTEP6), 1))
}

// The floating IP of a VIP is asked from outside of the cloud: by a host on the provider network,
// and from behind the underlay, with exposure without EVPN. OVN balances it.
func TestFloatingIP(t *testing.T) {
	w := shared(t)
	w.octavia()
	at6 := intent.FormatEndpoint(floating6, vipHTTP)
	w.add("tcp", map[string][]string{at6: endpoints(floating6, 8080)})
	if err := w.AddVM(w.Context(), "a", outsider); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.DelVM(context.Background(), outsider.Name); err != nil {
			t.Error(err)
		}
	})
	client := asking{outsider.Name, "a1", "public", [2]netip.Addr{outsider.Addr4, outsider.Addr6}}
	for _, a := range []netip.Addr{octaviaFIP, floating6} {
		w.eventually(fmt.Sprintf("%s answers on the provider network", a), func() error {
			_, _, err := w.ask(client.name, "tcp", a)
			return err
		})
		w.spread(client, "tcp", a)
	}

	rr := w.node("rr")
	w.beside()
	for _, c := range []struct{ vip, from netip.Addr }{{octaviaFIP, rr.VTEP4}, {floating6, rr.VTEP6}} {
		w.eventually(fmt.Sprintf("a1 announces %s", c.vip), func() error {
			out, err := w.Exec(w.Context(), "rr", "ip", family(c.vip), "route", "show", "proto", "bgp", c.vip.String())
			if err == nil && !strings.Contains(out, "via") {
				err = errors.New("rr has no route to it")
			}
			return err
		})
		w.underlay(c.vip, "a1")
		seen := map[string]int{}
		for range requests {
			labtest.Eventually(t, w.Lab, "an answer through the underlay", func() error {
				out, err := w.Exec(w.Context(), "rr", "curl", "-gsS", "--interface", c.from.String(), "--max-time", httpPatience, "http://"+intent.FormatEndpoint(c.vip, vipHTTP)+"/")
				name, who, _ := strings.Cut(strings.TrimSpace(out), " ")
				if from, failed := netip.ParseAddrPort(who); err == nil && (failed != nil || from.Addr() != c.from) {
					err = fmt.Errorf("%s was asked by %s", name, who)
				}
				if err == nil {
					seen[name]++
				}
				return err
			})
		}
		if len(seen) < 3 || c.vip == octaviaFIP && seen[fmt.Sprintf("be%d", lab.Backends)] > 0 {
			t.Errorf("%s is answered by %v", c.vip, seen)
		}
	}
}

// family is an option of ip.
func family(of netip.Addr) string {
	if of.Is4() {
		return "-4"
	}
	return "-6"
}

// underlay has the routers of the underlay lead packets for an address to a node until the test ends.
func (w *world) underlay(a netip.Addr, node string) {
	w.Helper()
	const fabricNode = "fabric"
	to := fmt.Sprintf("fd29:%d::2", w.node(node).Index)
	if a.Is4() {
		to = fmt.Sprintf("172.29.%d.2", w.node(node).Index)
	}
	if _, err := w.Exec(w.Context(), fabricNode, "ip", family(a), "route", "replace", a.String(), "via", to); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if _, err := w.Exec(context.Background(), fabricNode, "ip", family(a), "route", "del", a.String(), "via", to); err != nil {
			w.Error(err)
		}
	})
}
