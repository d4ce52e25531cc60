//go:build guest

package evpn_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parityRows are what works on either path of red, the same on both. Those that are
// quick are enough to know that a path carries traffic.
var parityRows = []struct {
	name  string
	quick bool
	check func(w *world)
}{
	{"packets of all sizes", true, (*world).sizes},
	{"what does not fit is answered", true, (*world).answersTooBig},
	{"no route is answered", true, (*world).answersNoRoute},
	{"the other tenant", true, (*world).otherTenant},
	{"fragments", false, (*world).fragments},
	{"the hop limit is answered", false, (*world).answersHopLimit},
	{"large segments", false, (*world).segments},
	{"a gateway router", false, (*world).gatewayRouter},
}

func (w *world) parity(whole bool) {
	for _, r := range parityRows {
		if r.quick || whole {
			w.Run(r.name, func(t *testing.T) { r.check(&world{T: t, Lab: w.Lab}) })
		}
	}
}

var reds = []string{"a-red1", "b-red1"}

func (w *world) sizes() {
	for _, vm := range reds {
		for _, addr := range far(vm) {
			for _, size := range []int{64, 1280, pathMTU} {
				w.pings(vm, addr, size, "-M", "do")
			}
		}
	}
}

func (w *world) answersTooBig() {
	for _, vm := range reds {
		for _, addr := range far(vm) {
			w.tooBig(vm, addr)
		}
	}
	w.forget(vms...)
}

// answersNoRoute: the answer is from an address that the tenant may know. The code is
// not judged: of IPv4, the kernel says that the host is unreachable, and not the network.
func (w *world) answersNoRoute() {
	for addr, want := range map[string]string{"10.77.0.1": "Unreachable", "fd77::1": "No route"} {
		out, err := w.Exec(w.Context(), "a-red1", "ping", "-n", "-c1", "-W", answerIn, addr)
		if err == nil || !strings.Contains(out, want) {
			w.Errorf("to %s, without a route: %v, want %q\n%s", addr, err, want, out)
		}
	}
}

// otherTenant has the same addresses, and its packets stay its own.
func (w *world) otherTenant() {
	for _, vm := range []string{"a-blue1", "b-blue1"} {
		for _, addr := range far(vm) {
			w.pings(vm, addr, pathMTU, "-M", "do")
		}
	}
	w.unreachable("a-blue1", "10.60.0.11", "fd00:60::11", "10.77.0.1", "fd77::1")
	if w.countEchoes("b-red1", addrB4, "a-blue1") != 0 {
		w.Error("a packet of blue came to red")
	}
	if w.countEchoes("b-red1", addrB4, "a-red1") == 0 {
		w.Error("no packet of red came to red")
	}
}

// countEchoes sends some requests and counts those that arrive at a VM.
func (w *world) countEchoes(at, addr, from string) int {
	c := w.capture(at, "any", "icmp[icmptype] == icmp-echo")
	w.pings(from, addr, 64)
	return len(w.stop(c))
}

func (w *world) fragments() {
	for _, vm := range reds {
		for _, size := range []int{pathMTU + 1, 1400, 4000} {
			w.forget(vms...)
			w.pings(vm, far(vm)[0], size, "-M", "dont")
		}
	}
}

// answersHopLimit: the way has as many routers, in the same order.
func (w *world) answersHopLimit() {
	for _, addr := range far("a-red1") {
		var seen []string
		for ttl := range 3 {
			out, _ := w.Exec(w.Context(), "a-red1", "ping", "-n", "-c1", "-W", answerIn, "-t", fmt.Sprint(ttl+1), addr)
			if m := regexp.MustCompile(`From (\S+) icmp_seq=1 Time`).FindStringSubmatch(out); m != nil {
				seen = append(seen, m[1])
			}
		}
		w.Logf("to %s: %v", addr, seen)
		want := []string{"10.10.0.1", "172.24.0.1", "172.25.0.11"}
		if strings.Contains(addr, ":") {
			want = []string{"fd00:10::1", "2001:db8:24::1", "2001:db8:25::b"}
		}
		if !slices.Equal(seen, want) {
			w.Errorf("to %s by %v, want %v", addr, seen, want)
		}
	}
}

func (w *world) segments() {
	file := bytes.Repeat([]byte("sluice "), 1<<17)
	for _, addr := range far("a-red1") {
		w.forget(vms...)
		got, err := w.download("b-red1", "a-red1", addr, file)
		if err != nil || got != sha256.Sum256(file) {
			w.Errorf("from %s: %v, content as sent: %v", addr, err, got == sha256.Sum256(file))
		}
	}
}

// gatewayRouter makes cloud B's router one that is wholly on its chassis, in place
// of a distributed one with a gateway port.
func (w *world) gatewayRouter() {
	w.nb("b", "lrp-del-gateway-chassis", "lrp-red-gw", "b1")
	w.nb("b", "set", "logical_router", "red-router", "options:chassis=b1")
	w.Cleanup(func() {
		_, _ = w.NB(background, "b", "remove", "logical_router", "red-router", "options", "chassis")
		_, _ = w.NB(background, "b", "lrp-set-gateway-chassis", "lrp-red-gw", "b1", "20")
	})
	for _, vm := range reds {
		w.reach(vm, far(vm)...)
		for _, addr := range far(vm) {
			w.pings(vm, addr, pathMTU, "-M", "do")
		}
	}
}
