package loadbalancer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
)

// empty makes VIPs without a backend, by TCP and UDP, of the router and its switches.
func (w *world) empty(vip netip.Addr, options ...string) {
	w.Helper()
	for protocol, port := range map[string]uint16{"tcp": vipHTTP, "udp": vipUDP} {
		at := intent.FormatEndpoint(vip, port)
		w.onSwitches(protocol, map[string][]string{at: nil})
		for _, o := range options {
			w.nb("set", "Load_Balancer", "lb "+protocol+" "+at, "options:"+o)
		}
	}
}

// refused tells whether a client is told that nobody is there, by a reset and by ICMP: without
// an answer it would be told of a time that is over.
func (w *world) refused(client string, vip netip.Addr) error {
	tcp := "echo hello | " + strings.Replace(socat(vip, vipHTTP, ""), " UDP", " TCP", 1) + ",connect-timeout=" + httpPatience
	udp := "(echo hello; sleep 1) | " + socat(vip, vipUDP, "-t1")
	for _, command := range []string{tcp, udp} {
		out, err := w.Exec(w.Context(), client, "sh", "-c", command+" 2>&1 || true")
		if err != nil || !strings.Contains(out, "Connection refused") {
			return fmt.Errorf("%s: %q (%w)", command, out, err)
		}
	}
	return nil
}

// A VIP without a backend whose load balancer says reject tells clients at once, of the fabric
// and VMs: OVN does. When it has backends they answer, and eBPF balances.
func TestReject(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.41"), netip.MustParseAddr("fd00:99::41")} {
		w.empty(vip, "reject=true")
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			t.Run(fmt.Sprintf("%s of %s", vip, c.name), func(t *testing.T) {
				w := &world{T: t, Lab: w.Lab}
				w.eventually("it is refused", func() error { return w.refused(c.name, vip) })
				w.eventually(c.node+" says why", func() error {
					list, err := w.vips(c.node)
					listed := false
					for _, v := range list {
						if v.Address != vip {
							continue
						}
						if v.Path != "ovn" || v.Reason != reason.NoBackends {
							return fmt.Errorf("%s: %s (%s)", v.Scope(), v.Path, v.Reason)
						}
						listed = true
					}
					if err == nil && !listed {
						err = errors.New("not listed")
					}
					return err
				})
			})
		}
		at := intent.FormatEndpoint(vip, vipHTTP)
		w.backends(vip, endpoints(vip, backend.HTTPPort))
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			w.eventually(c.name+" is answered by "+at, func() error {
				_, from, err := w.ask(c.name, "tcp", vip)
				if err != nil {
					return err
				}
				if _, ok := w.session(c.node, intent.TCP, from, netip.AddrPortFrom(vip, vipHTTP)); !ok {
					err = errors.New("by OVN")
				}
				return err
			})
		}
	}
}

// dropped counts the packets of a node that had no backend.
func (w *world) dropped(node string) (n uint64) {
	w.Helper()
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "drops")
	var d status.Drops
	if err = errors.Join(err, json.Unmarshal([]byte(out), &d)); err != nil {
		w.Fatal(err)
	}
	for _, c := range d.Counts {
		if c.Reason == drop.NoBackend.String() {
			n += c.Packets
		}
	}
	return n
}

// unanswered waits until packets of a client to a VIP are dropped, and counted by its node and
// by the VIP; nobody answers them.
func (w *world) unanswered(c asking, vip netip.Addr) {
	w.Helper()
	at, before := intent.FormatEndpoint(vip, vipHTTP), w.dropped(c.node)
	w.eventually(c.name+"'s packets are dropped", func() error {
		out, err := w.Exec(w.Context(), c.name, "sh", "-c", fmt.Sprintf("curl -gsS --max-time 0.5 http://%s/ 2>&1 && echo answered || true", at))
		if strings.Contains(out, "answered") || strings.Contains(out, "refused") {
			return errors.Join(err, errors.New(out))
		}
		if n := w.dropped(c.node) - before; err == nil && n == 0 {
			err = errors.New("none is counted")
		}
		return err
	})
	out, err := w.Exec(w.Context(), c.node, w.sluicectl(), "-o", "json", "lb", "show", at)
	var list []status.VIP
	if err = errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil {
		w.Fatal(err)
	}
	drops := uint64(0)
	for _, v := range list {
		if v.Traffic != nil && (v.Switch == "") == (c.name == fabric.name) {
			drops += v.Traffic.Drops
		}
	}
	if drops == 0 {
		w.Errorf("no VIP has counted them: %s", out)
	}
}

// Without a backend, and without reject, packets are dropped and counted: those of the fabric
// too, for a VIP in a network that is exposed, which they find without the VIP's own route.
func TestNoBackend(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.10.0.61"), netip.MustParseAddr("fd00:10::61")} {
		w.empty(vip)
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			t.Run(fmt.Sprintf("%s of %s", vip, c.name), func(t *testing.T) { (&world{T: t, Lab: w.Lab}).unanswered(c, vip) })
		}
	}
}

// A VIP all of whose backends are drained gets no new flows, also with reject: OVN, which would
// tell clients, knows no weights. Connections go on.
func TestAllDrained(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.45"), netip.MustParseAddr("fd00:99::45")} {
		at := w.webOnSwitches(vip)
		w.option("tcp", at, "reject", "true")
		var all []*streams
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			w.answered(c.name, "tcp", vip)
			all = append(all, w.streams(c.name, vip, 5))
		}
		w.nb("set", "Load_Balancer", "lb tcp "+at, fmt.Sprintf("options:sluice-weights=%q", strings.Join(endpoints(vip, backend.HTTPPort), "=0,")+"=0"))
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			w.unanswered(c, vip)
		}
		for _, s := range all {
			s.check()
		}
	}
}
