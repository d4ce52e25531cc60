//go:build guest

package evpn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// redOn puts red's VRF on a path in both clouds, by annotation, and waits until
// it is on it everywhere.
func (w *world) redOn(path string) {
	w.Helper()
	for _, cloud := range []string{"a", "b"} {
		w.nb(cloud, "set", "logical_router_port", "lrp-red-gw", "external_ids:sluice-path="+path)
	}
	for _, node := range []string{"a1", "b1"} {
		w.eventually(fmt.Sprintf("%s has red on path %s", node, path), func() error {
			v, err := w.vrf(node, vniRed)
			if err == nil && (v.State != status.OK || v.Path != path || v.Reason != "annotated") {
				err = fmt.Errorf("VRF %+v", v)
			}
			return err
		})
	}
}

func (w *world) vrf(node string, vni int) (v status.VRF, err error) {
	out, err := w.Exec(w.Context(), node, sluicectl(), "vrf", "show", fmt.Sprint(vni), "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &v)
	}
	return v, err
}

// onAnyPath is the lab with nodes that may forward IPv6, as the kernel path needs.
func onAnyPath(t *testing.T) *world {
	t.Helper()
	w := shared(t)
	for _, n := range w.chassis() {
		w.exec(n, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
	}
	t.Cleanup(func() {
		for _, cloud := range []string{"a", "b"} {
			_, _ = w.NB(background, cloud, "remove", "logical_router_port", "lrp-red-gw", "external_ids", "sluice-path")
		}
		if t.Failed() {
			for _, n := range []string{"a1", "b1"} {
				for _, show := range []string{
					sluicectl() + " vrf show 1001; " + sluicectl() + " diff", "ip -d link show type vrf; ip rule; ip -6 rule",
					"ip route show vrf vrf-1001; ip -6 route show vrf vrf-1001; ip neigh; ip -6 neigh", "ip -s -d link | grep -A6 '1001'",
				} {
					out, err := w.Exec(background, n, "sh", "-c", show)
					t.Logf("%s: %s: %v\n%s", n, show, err, tail(out, 6000))
				}
			}
		}
	})
	return w
}

// A VRF changes its path under traffic and loses at most two packets of each
// stream; the other tenant's loses none.
func TestFlipPath(t *testing.T) {
	w := onAnyPath(t)
	for _, path := range []string{"kernel", "ebpf"} {
		streams := w.streams()
		w.redOn(path)
		w.reach("a-red1", addrB4, addrB6)
		for _, s := range streams {
			sent, lost := s.stop()
			t.Logf("to path %s: %s: %d of %d lost", path, s.name, lost, sent)
			if allowed := map[bool]int{true: 2}[strings.Contains(s.name, "red")]; lost > allowed || sent == 0 {
				t.Errorf("to path %s: %s: %d of %d lost, at most %d may be:\n%s", path, s.name, lost, sent, allowed, tail(s.out.String(), 400))
			}
		}
		w.traffic()
	}
	w.clean()
}

// traffic is what works on either path.
func (w *world) traffic() {
	w.Helper()
	for _, vm := range []string{"a-red1", "b-red1"} {
		for _, addr := range far(vm) {
			w.pings(vm, addr, 64)
			w.pings(vm, addr, 1280)
			w.pings(vm, addr, pathMTU, "-M", "do")
			w.forget(vm)
			w.tooBig(vm, addr)
		}
	}
	w.unreachable("a-blue1", "10.60.0.11", "fd00:60::11")
}
