package evpn_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// fabricOf is a part of the configuration.
func fabricOf(text string) string { return "fabric:\n" + text }

// Provider networks are VLANs on two bridges; the outer headers are as the
// configuration wants them.
func TestVLANsOnTwoBridges(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{VLAN: 100, TwoBridges: true}), fabricOf("  mtu: 1350\n  df: set\n  udpChecksum: \"on\"\n"))
	w.connected()
	w.outerHeaders(true, true)
	for _, vm := range vms {
		for _, addr := range far(vm) {
			w.pings(vm, addr, pathMTU, "-M", "do")
			// DF is always set outside: what does not fit is answered, also for
			// packets without DF of their own.
			out, err := w.Exec(t.Context(), vm, "ping", "-n", "-c1", "-W2", "-M", "dont", "-s", fmt.Sprint(1400-headers(addr)), addr)
			if err == nil {
				t.Errorf("%s to %s: 1400 bytes passed:\n%s", vm, addr, out)
			}
		}
	}
	for _, n := range w.chassis() {
		w.eventually("two pairs of devices on "+n, func() error {
			_, err := w.Exec(t.Context(), n, "ip", "link", "show", "sluice1")
			return err
		})
	}
	w.clean()
}

// Two peers announce one prefix: flows are spread over both VTEPs, each flow to
// one, and one of them takes all when the other withdraws.
func TestECMP(t *testing.T) {
	shared := netip.MustParsePrefix("10.50.0.1/24")
	shared6 := netip.MustParsePrefix("fd00:50::1/64")
	peer := func(name string) lab.Peer {
		return lab.Peer{Name: name, VRFs: []lab.PeerVRF{{VNI: vniRed, Addrs: []netip.Prefix{shared, shared6}}}}
	}
	w := own(t, lab.EVPN(lab.EVPNParams{Peers: []lab.Peer{peer("p1"), peer("p2")}}), "")
	w.connected()
	for _, p := range []string{"p1", "p2"} {
		w.synced(p, "10.10.0.11/32", "fd00:10::11/128")
	}
	for _, addr := range []netip.Addr{shared.Addr(), shared6.Addr()} {
		w.reach("a-red1", addr.String())
		w.spreads("a-red1", addr, edges...)
	}
	w.unreachable("a-blue1", shared.Addr().String(), shared6.Addr().String())
	w.loseOneOfTwo(shared.Addr(), shared6.Addr())
	for _, p := range []netip.Prefix{shared, shared6} {
		if err := w.PeerWithdraw(t.Context(), "p1", vniRed, p.Masked()); err != nil {
			t.Fatal(err)
		}
		w.eventually("all flows are at p2", func() error {
			if by := w.spread("a-red1", p.Addr(), edges...); by[edges[0]] != 0 {
				return fmt.Errorf("flows by peer: %v", by)
			}
			return nil
		})
	}
	w.clean()
}

// synced waits until a peer has learned the prefixes and puts them into its VRFs.
func (w *world) synced(peer string, prefixes ...string) {
	w.Helper()
	w.eventually("routes at "+peer, func() error {
		routes, err := w.PeerRoutes(w.Context(), peer)
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, r := range routes {
			have[r.Prefix.String()] = true
		}
		for _, p := range prefixes {
			if !have[p] {
				return fmt.Errorf("no %s", p)
			}
		}
		return nil
	})
	if err := w.PeerSync(w.Context(), peer); err != nil {
		w.Fatal(err)
	}
}

const flowCount = 64

// edges are the namespaces of red at two peers.
var edges = []string{lab.VRFNode("p1", vniRed), lab.VRFNode("p2", vniRed)}

// spreads checks that flows to an address arrive at each of some nodes, and that
// a flow keeps its way.
func (w *world) spreads(from string, addr netip.Addr, at ...string) {
	w.Helper()
	first := w.spread(from, addr, at...)
	w.Logf("flows from %s to %s: %v", from, addr, first)
	for _, n := range at {
		if first[n] == 0 {
			w.Errorf("flows from %s to %s: %v, want some at each", from, addr, first)
		}
	}
	for n, count := range w.spread(from, addr, at...) {
		if first[n] != count {
			w.Errorf("%s: %d flows at %s, then %d: a flow changed its way", addr, first[n], n, count)
		}
	}
}

// spread sends a datagram of each of some flows, and counts at which node they
// arrive.
func (w *world) spread(from string, addr netip.Addr, at ...string) map[string]int {
	w.Helper()
	const port = 6000
	captures := map[string]*lab.Capture{}
	for _, n := range at {
		captures[n] = w.capture(n, "any", fmt.Sprintf("udp dst port %d", port))
	}
	for i := range flowCount {
		w.in(from, func() error {
			// Linux gives the packets of a connected socket a random number of the
			// socket's as their hash, which stays with them through the lab's devices,
			// and routes by it. A VM's packets come to a node without one.
			c, err := net.ListenUDP("udp", &net.UDPAddr{Port: 20000 + i})
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.WriteTo([]byte("which way?"), &net.UDPAddr{IP: addr.AsSlice(), Port: port})
			// A new flow is slow in the userspace datapath, and its queue short.
			time.Sleep(5 * time.Millisecond)
			return err
		})
	}
	count := func() (map[string]int, int) {
		by, all := map[string]int{}, 0
		for p, c := range captures {
			n, err := c.Count()
			if err != nil {
				w.Fatal(err)
			}
			by[p] = n
			all += n
		}
		return by, all
	}
	labtest.Eventually(w.T, w.Lab, "the datagrams", func() error {
		if by, all := count(); all < flowCount {
			return fmt.Errorf("%v", by)
		}
		return nil
	})
	by, all := count()
	if all != flowCount {
		w.Errorf("%d datagrams arrived, %d were sent", all, flowCount)
	}
	for _, c := range captures {
		w.stop(c)
	}
	return by
}

// The tunnels run over IPv6, and BGP too.
func TestIPv6Underlay(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{}))}
	for _, n := range w.chassis() {
		w.startWith(n, w.node("rr").VTEP6, fabricOf(fmt.Sprintf("  vtep: %s\n  mtu: 1380\n", w.node(n).VTEP6)))
	}
	w.connected()
	w.outerHeaders(true, true)
	const fits = 1380 - 70
	for _, vm := range vms {
		for _, addr := range far(vm) {
			w.pings(vm, addr, fits, "-M", "do")
		}
	}
	w.loseVTEP6()
	w.shrinks(1360, 1290, w.node("b1").VTEP6)
	for _, vm := range []string{"a-red1", "b-blue1"} {
		out, err := w.Exec(t.Context(), vm, "ping", "-n", "-c1", "-W2", "-M", "do", "-s", fmt.Sprint(fits+1-headers(far(vm)[0])), far(vm)[0])
		if err == nil {
			t.Errorf("%s: a packet above the path MTU passed:\n%s", vm, out)
		}
	}
	w.clean()
}
