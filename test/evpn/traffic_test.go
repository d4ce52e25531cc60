package evpn_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

var pingSummary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// headers is what ping adds to its payload.
func headers(addr string) int {
	if strings.Contains(addr, ":") {
		return 40 + 8
	}
	return 20 + 8
}

// pings sends packets of an IP size and demands all the answers.
func (w *world) pings(vm, addr string, size int, more ...string) {
	w.Helper()
	// All at once: after the last packet, ping waits for as long as the interval.
	argv := append([]string{"ping", "-n", "-c4", "-l4", "-i", answerIn, "-s", fmt.Sprint(size - headers(addr))}, more...)
	out, err := w.Exec(w.Context(), vm, append(argv, addr)...)
	m := pingSummary.FindStringSubmatch(out)
	if m == nil || m[1] != m[2] {
		w.Errorf("%s to %s with %d bytes %v: %v\n%s", vm, addr, size, more, err, out)
	}
	if strings.Contains(out, "DUP!") {
		w.Errorf("%s to %s: answers came twice:\n%s", vm, addr, out)
	}
}

// forget drops what a VM has learned about path MTUs.
func (w *world) forget(vms ...string) {
	w.Helper()
	for _, vm := range vms {
		w.exec(vm, "ip", "-4", "route", "flush", "cache")
		w.exec(vm, "ip", "-6", "route", "flush", "cache")
	}
}

func TestPingOfEverySize(t *testing.T) {
	w := shared(t)
	for _, vm := range vms {
		for _, addr := range far(vm) {
			for _, size := range []int{64, 128, 576, 1280, pathMTU} {
				w.pings(vm, addr, size)
				w.pings(vm, addr, size, "-M", "do")
			}
		}
	}
}

// far is what a VM talks to in the other cloud.
func far(vm string) []string {
	if strings.HasPrefix(vm, "a-") {
		return []string{addrB4, addrB6}
	}
	return []string{addrA4, addrA6}
}

// A packet that does not fit and must not be fragmented is answered, with the
// MTU that would do, and the sender uses it. IPv6 has no other kind.
func TestTooBigIsAnswered(t *testing.T) {
	for _, vm := range []string{"a-red1", "b-blue1"} {
		for _, addr := range far(vm) {
			t.Run(vm+" "+addr, func(t *testing.T) {
				w := shared(t)
				w.tooBig(vm, addr)
				if out := w.exec(vm, "ip", "route", "get", addr); !strings.Contains(out, fmt.Sprintf("mtu %d", pathMTU)) {
					t.Errorf("the VM did not take the path MTU: %s", out)
				}
				// With it the VM fragments by itself. The first packet teaches the
				// other side the same, by the answer that is lost.
				_, _ = w.Exec(t.Context(), vm, "ping", "-n", "-c1", "-W0.2", "-s", fmt.Sprint(1400-headers(addr)), addr)
				w.pings(vm, addr, 1400, "-M", "want")
				w.pings(vm, addr, 4000, "-M", "want")
			})
		}
	}
}

// tooBig checks that a VM is told the path MTU.
func (w *world) tooBig(vm, addr string) {
	w.Helper()
	w.forget(vms...)
	out, err := w.Exec(w.Context(), vm, "ping", "-n", "-c1", "-W", answerIn, "-M", "do", "-s", fmt.Sprint(1400-headers(addr)), addr)
	if err == nil {
		w.Errorf("1400 bytes passed:\n%s", out)
	}
	if !regexp.MustCompile(fmt.Sprintf(`mtu ?= ?%d\b`, pathMTU)).MatchString(out) {
		w.Errorf("no word about MTU %d:\n%s", pathMTU, out)
	}
}

// Without DF a packet above the path MTU arrives.
func TestTooBigWithoutDF(t *testing.T) {
	for _, vm := range vms {
		t.Run(vm, func(t *testing.T) {
			w := shared(t)
			for _, size := range []int{pathMTU + 1, 1400, 4000} {
				w.forget(vms...)
				w.pings(vm, far(vm)[0], size, "-M", "dont")
			}
		})
	}
}

// Routers on the way answer when the hop limit ends, and the way has no loop.
func TestTimeExceeded(t *testing.T) {
	w := shared(t)
	for _, c := range []struct{ vm, addr, router string }{
		{"a-red1", addrB4, "10.10.0.1"}, {"a-red1", addrB6, "fd00:10::1"},
		{"b-blue1", addrA4, "10.20.0.1"}, {"b-blue1", addrA6, "fd00:20::1"},
	} {
		var seen []string
		for ttl := 1; ttl <= 5; ttl++ {
			out, err := w.Exec(t.Context(), c.vm, "ping", "-n", "-c1", "-W2", "-t", fmt.Sprint(ttl), c.addr)
			if err == nil {
				break
			}
			// The fourth hop is OVN's router in the other cloud, which is not
			// judged here: OVN 23.03 keeps silent for IPv6.
			if m := regexp.MustCompile(`From (\S+) icmp_seq=1 Time`).FindStringSubmatch(out); m != nil {
				seen = append(seen, m[1])
			} else if ttl < 4 {
				t.Errorf("%s to %s with hop limit %d: no answer of a router:\n%s", c.vm, c.addr, ttl, out)
			}
			if ttl > 4 {
				t.Errorf("%s to %s: more than four routers on the way:\n%s", c.vm, c.addr, out)
			}
		}
		t.Logf("%s to %s: %v", c.vm, c.addr, seen)
		if len(seen) < 3 || seen[0] != c.router {
			t.Errorf("%s to %s passes %v; want the tenant's router %s, the near node and the far node's router", c.vm, c.addr, seen, c.router)
		}
	}
}

func TestBothTenantsAtOnce(t *testing.T) {
	w := shared(t)
	streams := []*stream{}
	for _, vm := range vms {
		for _, addr := range far(vm) {
			streams = append(streams, w.stream(vm, addr, "-c", "60", "-i", "0.05"))
		}
	}
	for _, s := range streams {
		s.noLoss(s.wait())
	}
	labtest.Ping(t, w.Lab, "a-red1", addrB4)
}
