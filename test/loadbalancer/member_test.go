package loadbalancer_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// A member whose port is deleted, or that never had one, is a backend without health: the VIP stays
// with eBPF at the gateway, on the member's own switch and on others, and what is drained stays so.
func TestMemberDeleted(t *testing.T) {
	w := shared(t)
	const port = "gone"
	w.nb("lsp-add", lab.SwitchName("red", "net"), port, "--", "lsp-set-addresses", port, "02:00:00:00:09:01 10.10.0.210")
	t.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", "--if-exists", "lsp-del", port); err != nil {
			t.Error(err)
		}
	})
	add := func(address, member string) netip.Addr {
		vip := netip.MustParseAddr(address)
		at, list := intent.FormatEndpoint(vip, vipUDP), endpoints(vip, backend.UDPPort)[:2]
		w.onSwitches("udp", map[string][]string{at: append(list, intent.FormatEndpoint(netip.MustParseAddr(member), backend.UDPPort))})
		w.nb("set", "Load_Balancer", "lb udp "+at, fmt.Sprintf("options:sluice-weights=\"%s=0,%s=256\"", list[0], list[1]))
		return vip
	}
	// places tells whether the VIP is eBPF's in all places, with the first backend drained.
	places := func(vip netip.Addr) error {
		for _, at := range append([]asking{{node: fabric.node}}, vms...) {
			name := ""
			if at.network != "" {
				name = lab.SwitchName("red", at.network)
			}
			list, err := w.vips(at.node)
			i := slices.IndexFunc(list, func(v status.VIP) bool { return v.Address == vip && v.Switch == name })
			if err != nil || i < 0 {
				return fmt.Errorf("%s does not know it on %q (%v)", at.node, name, err)
			}
			if v := list[i]; v.Path != "ebpf" || v.State != "ok" || len(v.Backends) != 3 || v.Backends[0].Weight != 0 || v.Backends[1].Weight != 256 || v.Backends[2].State != "up" {
				return fmt.Errorf("%s says of it on %q: %+v", at.node, name, v)
			}
		}
		return nil
	}
	deleted := add("10.99.0.45", "10.10.0.210")
	w.eventually("eBPF balances everywhere", func() error { return places(deleted) })
	w.nb("lsp-del", port)
	// Who knows this one knows of the deletion: rows come in order.
	never := add("fd00:99::45", "fd00:10::210")
	w.eventually("eBPF balances a VIP everywhere whose member never had a port", func() error { return places(never) })
	if err := places(deleted); err != nil {
		t.Errorf("after a member's port was deleted: %v", err)
	}
	for _, vip := range []netip.Addr{deleted, never} {
		for _, c := range append([]asking{fabric}, vms...) {
			const flows = 40
			// The member without a port answers none of the few flows that are its: one in 257.
			labtest.Eventually(t, w.Lab, "answers", func() error {
				answers, err := w.asks(c.name, "udp", vip, flows)
				for _, got := range answers {
					if got.name != "be2" {
						t.Errorf("%s by %s: an answer of %s", vip, c.name, got.name)
					}
				}
				return err
			})
		}
	}
}

// A drain holds when the owner of the load balancer writes its options as a whole.
func TestDrainHolds(t *testing.T) {
	w := shared(t)
	for _, address := range []string{"10.99.0.46", "fd00:99::46"} {
		vip := netip.MustParseAddr(address)
		at, list := intent.FormatEndpoint(vip, vipUDP), endpoints(vip, backend.UDPPort)[:2]
		name := "lb udp " + at
		w.onSwitches("udp", map[string][]string{at: list})
		// places tells whether all of them have the weight, and the affinity of the owner's options.
		places := func(weight, affinity uint16) error {
			for _, place := range append([]asking{{node: fabric.node}}, vms...) {
				all, err := w.vips(place.node)
				i := slices.IndexFunc(all, func(v status.VIP) bool { return v.Address == vip && (v.Switch == "") == (place.network == "") })
				if err != nil || i < 0 {
					return fmt.Errorf("%s does not know it (%v)", place.node, err)
				}
				if v := all[i]; v.Path != "ebpf" || v.Affinity != affinity || len(v.Backends) != 2 || v.Backends[0].Weight != weight {
					return fmt.Errorf("%s says %+v", place.node, v)
				}
			}
			return nil
		}
		w.eventually("eBPF balances it", func() error { return places(1, 0) })
		run := func(command string) {
			t.Helper()
			if out, err := w.Exec(w.Context(), fabric.node, w.sluicectl(), "lb", command, name, list[0]); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
		run("drain")
		w.eventually("it is drained", func() error { return places(0, 0) })
		w.nb("set", "Load_Balancer", name, `options={affinity_timeout="360"}`)
		w.eventually("it is drained with the owner's options", func() error { return places(0, 360) })
		// Nodes without ovn.nb read it here.
		key := "sluice-weight-" + strings.TrimSpace(w.nb("--bare", "--columns=_uuid", "find", "Load_Balancer", fmt.Sprintf("name=%q", name))) + "-" + list[0]
		w.eventually("Southbound has it", func() error {
			options, err := w.SB(w.Context(), "a", "get", "SB_Global", ".", "options")
			if err == nil && !strings.Contains(options, key) {
				err = fmt.Errorf("no %s in %s", key, options)
			}
			return err
		})
		run("undrain")
		w.eventually("it is taken back", func() error { return places(1, 360) })
		if options := w.nb("get", "NB_Global", ".", "options"); strings.Contains(options, key) {
			t.Errorf("the key is there still: %s", options)
		}
	}
}
