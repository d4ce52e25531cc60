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
	"github.com/ovn-sluice/sluice/test/nightly"
)

// socat talks UDP to a VIP.
func socat(to netip.Addr, port uint16, options string) string {
	kind := "UDP6"
	if to.Is4() {
		kind = "UDP4"
	}
	return fmt.Sprintf("socat -b 65536 %s - %s:%s", options, kind, intent.FormatEndpoint(to, port))
}

// A VIP answers to ping.
func TestPing(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.6"), netip.MustParseAddr("fd00:99::6")} {
		w.web(vip)
		out, err := w.Exec(w.Context(), "c-fabric", "ping", "-n", "-c", "5", "-i", "0.2", "-W", "3", vip.String())
		if err != nil || !strings.Contains(out, " 0% packet loss") || !strings.Contains(out, "from "+vip.String()) {
			t.Errorf("ping %s: %v\n%s", vip, err, out)
		}
	}
}

// Datagrams that come and go in fragments get to one backend and back.
func TestFragments(t *testing.T) {
	w := shared(t)
	const size = 4000
	n := 8 // a second each
	if nightly.On() {
		n = 20
	}
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.7"), netip.MustParseAddr("fd00:99::7")} {
		w.add("udp", map[string][]string{intent.FormatEndpoint(vip, vipUDP): endpoints(vip, backend.UDPPort)})
		w.answered("c-fabric", "udp", vip)
		seen := map[string]int{}
		for range n {
			out, err := w.Exec(w.Context(), "c-fabric", "sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x | %s", size, socat(vip, vipUDP, "-t1")))
			name, rest, _ := strings.Cut(out, " ")
			if err != nil || len(out) != size || !strings.HasSuffix(rest, "xxxx") {
				t.Fatalf("%s: %d bytes, %.60q (%v)", vip, len(out), out, err)
			}
			seen[name]++
		}
		if len(seen) < 2 {
			t.Errorf("all datagrams went to one backend: %v", seen)
		}
		if known := w.known("a1", vip); known < n {
			t.Errorf("eBPF knows %d flows", known)
		}
	}
}

// An ICMP error about what a backend or a client has sent gets to it through the VIP: a
// smaller MTU on the way is found, and a closed port is known at once.
func TestErrorsThroughVIP(t *testing.T) {
	w := shared(t)
	const mtu = "1300"
	port := lab.GatewayPort("red")
	if _, err := w.NB(w.Context(), "b", "set", "Logical_Router_Port", port, "options:gateway_mtu="+mtu); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := w.NB(context.Background(), "b", "remove", "Logical_Router_Port", port, "options", "gateway_mtu"); err != nil {
			t.Error(err)
		}
	})
	const script = `set -eu
f=$(mktemp)
trap 'rm -f "$f" "$f.back"' EXIT
head -c 1048576 /dev/urandom >"$f"
curl -gsSf --max-time 60 --data-binary @"$f" -H 'Expect:' -H 'Content-Type: application/octet-stream' -o "$f.back" "$1/back"
cmp "$f" "$f.back"`
	for _, c := range []struct{ vip, client string }{{"10.99.0.8", "10.20.0.31"}, {"fd00:99::8", "fd00:20::31"}} {
		vip := netip.MustParseAddr(c.vip)
		at := intent.FormatEndpoint(vip, vipHTTP)
		one := endpoints(vip, backend.HTTPPort)[:1]
		w.add("tcp", map[string][]string{at: one})
		w.answered("c-fabric", "tcp", vip)
		if out, err := w.Exec(w.Context(), "c-fabric", "sh", "-c", script, "sh", "http://"+at); err != nil {
			t.Errorf("%s: %v\n%s", vip, err, out)
		}
		if out, err := w.Exec(w.Context(), "be1", "ip", "route", "get", c.client); err != nil || !strings.Contains(out, "mtu "+mtu) {
			t.Errorf("be1 has not learned the MTU: %v\n%s", err, out)
		}
		const closed = 7999
		w.add("udp", map[string][]string{intent.FormatEndpoint(vip, closed): endpoints(vip, closed)})
		w.eventually("a closed port is known as such", func() error {
			out, err := w.Exec(w.Context(), "c-fabric", "sh", "-c", "(echo hello; sleep 1) | "+socat(vip, closed, "-t1")+" 2>&1 || true")
			if err != nil || !strings.Contains(out, "Connection refused") {
				return fmt.Errorf("%q (%w)", out, err)
			}
			return nil
		})
	}
}
