package loadbalancer_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// A backend with the weight 3 gets three times the flows of one with the weight 1. Of 1,000 flows
// to three backends 600 are its, by chance 15 more or less: 500 to 692 are let pass.
func TestWeights(t *testing.T) {
	w := shared(t)
	for address, c := range map[string]asking{"10.99.0.43": fabric, "fd00:99::43": vms[0]} {
		vip := netip.MustParseAddr(address)
		at, list := intent.FormatEndpoint(vip, vipUDP), endpoints(vip, backend.UDPPort)[:3]
		w.onSwitches("udp", map[string][]string{at: list})
		w.nb("set", "Load_Balancer", "lb udp "+at, fmt.Sprintf("options:sluice-weights=\"%s=3\"", list[1]))
		w.eventually(c.node+" has the weight", func() error {
			vips, err := w.vips(c.node)
			for _, v := range vips {
				if v.Address == vip && (v.Switch == "") == (c.name == fabric.name) && len(v.Backends) == 3 && v.Backends[1].Weight == 3 && v.State == "ok" && v.Path == "ebpf" {
					return nil
				}
			}
			return fmt.Errorf("%+v (%w)", vips, err)
		})
		w.eventually("eBPF answers "+c.name, func() error {
			_, from, err := w.ask(c.name, "udp", vip)
			if err != nil {
				return err
			}
			if _, ok := w.session(c.node, intent.UDP, from, netip.MustParseAddrPort(at)); !ok {
				err = errors.New("OVN did")
			}
			return err
		})
		const flows, atOnce = 1000, 100
		seen := map[string]int{}
		for range flows / atOnce {
			labtest.Eventually(t, w.Lab, "answers", func() error {
				answers, err := w.asks(c.name, "udp", vip, atOnce)
				for _, got := range answers {
					if err == nil {
						seen[got.name]++
					}
				}
				return err
			})
		}
		heavy, others := seen["be2"], seen["be1"]+seen["be3"]
		if heavy < others || heavy*2 > others*9/2 || heavy+others != flows || seen["be1"] < 100 || seen["be3"] < 100 {
			t.Errorf("%s by %s: be2 has the weight 3, and flows went to %v", vip, c.name, seen)
		}
		t.Logf("%s by %s: %v", vip, c.name, seen)
	}
}

// A VIP of SCTP, whose ports stay, is served as others are; one that would change them is OVN's.
func TestSCTP(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.44"), netip.MustParseAddr("fd00:99::44")} {
		at, changed := netip.AddrPortFrom(vip, backend.SCTPPort), netip.AddrPortFrom(vip, backend.SCTPPort+1)
		w.onSwitches("sctp", map[string][]string{at.String(): endpoints(vip, backend.SCTPPort), changed.String(): endpoints(vip, backend.SCTPPort)})
		for _, c := range slices.Concat([]asking{fabric}, vms) {
			t.Run(fmt.Sprintf("%s of %s", vip, c.name), func(t *testing.T) {
				w := &world{T: t, Lab: w.Lab}
				w.eventually("eBPF answers", func() error {
					_, from, err := w.ask(c.name, "sctp", vip)
					if err != nil {
						return err
					}
					if _, ok := w.session(c.node, intent.SCTP, from, at); !ok {
						err = errors.New("OVN did")
					}
					return err
				})
				for _, got := range w.spread(c, "sctp", vip) {
					f, ok := w.session(c.node, intent.SCTP, got.from, at)
					if want := endpoints(vip, backend.SCTPPort)[number(got.name)]; !ok || f.Backend.String() != want {
						t.Errorf("%s answered %s: %+v (%t)", got.name, got.from, f, ok)
					}
				}
				list, err := w.vips(c.node)
				for _, v := range list {
					if v.Address == vip && v.Port == changed.Port() && (v.Path != "ovn" || v.Reason != "sctp-port") {
						t.Errorf("%s: the VIP that changes the port has the path %s (%s)", v.Scope(), v.Path, v.Reason)
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
