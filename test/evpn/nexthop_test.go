package evpn_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// told waits until a node's status has an error of an object, or has none any more.
func (w *world) told(node, kind, key, why string, want bool) (text string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s says %s of %s %s: %v", node, why, kind, key, want), func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(s.Problems, func(o status.Object) bool { return o.Kind == kind && o.Key == key && o.Reason == why })
		if at >= 0 {
			text = s.Problems[at].Error
		}
		if at >= 0 != want {
			return fmt.Errorf("problems: %+v", s.Problems)
		}
		return nil
	})
	return text
}

// says waits until a command's output has some words. What its exit code is does not matter.
func (w *world) says(node string, words []string, argv ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%v on %s says %q", argv, node, words), func() error {
		out, _ := w.Exec(w.Context(), node, append([]string{sluicectl()}, argv...)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				return fmt.Errorf("no %q in %s", word, out)
			}
		}
		return nil
	})
}

// blocked has a route that leads nowhere for a VTEP, until mend is called.
func (w *world) blocked(node, kind string, vtep netip.Addr) (mend func()) {
	w.Helper()
	prefix, mended := netip.PrefixFrom(vtep, vtep.BitLen()).String(), false
	w.exec(node, "ip", "route", "add", kind, prefix)
	w.Cleanup(func() {
		if !mended { // the lab may be others', too
			_, _ = w.Exec(background, node, "ip", "route", "del", kind, prefix)
		}
	})
	return func() {
		w.Helper()
		w.exec(node, "ip", "route", "del", kind, prefix)
		mended = true
	}
}

// The underlay loses the way to the only VTEP of some networks: their routes are withdrawn
// from the map, which status, explain, trace and the list of routes say, naming the VTEP; and
// they are back with the way. The tenant of the other direction has the same seen from there.
func TestVTEPWithoutRoute(t *testing.T) {
	w := shared(t)
	vtep := w.node("b1").VTEP4
	for _, kind := range []string{"unreachable", "blackhole", "prohibit"} {
		mend := w.blocked("a1", kind, vtep)
		said := w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, true)
		if !strings.Contains(said, "("+kind+")") {
			t.Errorf("%s: status says %q", kind, said)
		}
		if kind == "unreachable" {
			w.unroutedAt("a1", vtep)
		}
		mend()
		w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, false)
		w.connected()
	}
	w.clean()
}

func (w *world) unroutedAt(node string, vtep netip.Addr) {
	w.Helper()
	for _, ends := range [][2]string{{addrA4, addrB4}, {addrA6, addrB6}} {
		w.says(node, []string{"next hop " + vtep.String(), "next-hop-unreachable"}, "explain", "--vrf", "1001", ends[0], ends[1])
		w.says(node, []string{"no_route", vtep.String(), "next-hop-unreachable"}, "trace", "--vrf", "1001", ends[0], ends[1])
		w.unreachable("a-red1", ends[1])
	}
	w.says(node, []string{"next-hop-unreachable"}, "bgp", "routes")
	before := w.tally()
	w.unreachable("a-red1", addrB4, addrB6)
	if lost := w.tally().since(before); !strings.Contains(fmt.Sprint(lost), "no_route") {
		w.Errorf("counted: %v", lost)
	}
}

// loseOneOfTwo has the underlay lose the way to one of two VTEPs that share the flows to some
// addresses: the other one carries all of them, until the way is back.
func (w *world) loseOneOfTwo(addrs ...netip.Addr) {
	w.Helper()
	vtep := w.node("p1").VTEP4
	mend := w.blocked("a1", "unreachable", vtep)
	w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, true)
	for _, a := range addrs {
		w.eventually(fmt.Sprintf("all flows to %s are at p2", a), func() error {
			if by := w.spread("a-red1", a, edges...); by[edges[0]] != 0 {
				return fmt.Errorf("flows by peer: %v", by)
			}
			return nil
		})
		src := addrA4
		if a.Is6() {
			src = addrA6
		}
		w.says("a1", []string{"not used, since this node has no route to the VTEP: " + vtep.String()}, "explain", "--vrf", "1001", src, a.String())
	}
	mend()
	w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, false)
	for _, a := range addrs {
		w.eventually("flows to "+a.String()+" at both peers", func() error {
			if by := w.spread("a-red1", a, edges...); by[edges[0]] == 0 || by[edges[1]] == 0 {
				return fmt.Errorf("flows by peer: %v", by)
			}
			return nil
		})
	}
}

// loseVTEP6 is TestVTEPWithoutRoute over an IPv6 underlay.
func (w *world) loseVTEP6() {
	w.Helper()
	vtep := w.node("b1").VTEP6
	for _, kind := range []string{"unreachable", "blackhole"} {
		mend := w.blocked("a1", kind, vtep)
		w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, true)
		w.unreachable("a-red1", addrB4, addrB6)
		mend()
		w.told("a1", "vtep", vtep.String(), reason.RouteUnreachable, false)
		w.connected()
	}
}
