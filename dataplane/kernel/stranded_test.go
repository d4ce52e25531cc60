package kernel_test

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What is left in the tables of VRFs that somebody else removed is listed and goes,
// whatever number the table has; the kernel's own tables, and routes of others, do not.
func TestStranded(t *testing.T) {
	h := newHost(t, "st")
	const others = `blackhole 10.0.0.0/8 table main proto 115 metric 173
blackhole 10.0.0.0/8 table default proto 115 metric 173
blackhole 10.3.0.0/16 table 1001 proto 186 metric 20`
	const ours = `blackhole 10.0.0.0/8 table 1001 proto 115 metric 173
unreachable default table 1001 proto 115 metric 4278198272
unreachable default table 16777221 proto 115 metric 4278198272
blackhole 10.1.0.0/16 table 16777221 proto 115 metric 173`
	for line := range strings.Lines(others + "\n" + ours) {
		h.run("ip route add " + strings.TrimSpace(line))
	}
	for _, line := range []string{"blackhole fd00::/64 table 1001 proto 115 metric 173", "unreachable default table 16777221 proto 115 metric 4278198272"} {
		h.run("ip -6 route add " + line)
	}
	path := kernel.NewPath(kernel.PathConfig{Namespace: h.namespace()}, kernel.PathNode{})
	routes, err := path.Routes().List(t.Context())
	want := map[intent.RouteKey]intent.Route{}
	for vni, prefix := range map[intent.VNI]string{1001: "10.0.0.0/8", 16777221: "10.1.0.0/16"} {
		want[intent.NewRouteKey(vni, netip.MustParsePrefix(prefix))] = intent.Route{}
	}
	want[intent.NewRouteKey(1001, netip.MustParsePrefix("fd00::/64"))] = intent.Route{}
	if err != nil || !maps.Equal(routes, want) {
		t.Errorf("routes %v, want %v: %v", routes, want, err)
	}
	// Of VNIs that are the numbers of the kernel's tables nothing is there.
	kept := intent.NewRouteKey(254, netip.MustParsePrefix("10.0.0.0/8"))
	keys := append(slices.Collect(maps.Keys(want)), kept, intent.NewRouteKey(253, kept.Prefix))
	if err := errors.Join(path.Routes().Delete(t.Context(), keys)...); err != nil {
		t.Error(err)
	}
	vrfs, err := path.VRFs().List(t.Context())
	if err != nil || !maps.Equal(vrfs, map[intent.VNI]intent.KernelVRF{1001: {}, 16777221: {}}) {
		t.Errorf("VRFs %v: %v", vrfs, err)
	}
	if err := errors.Join(path.VRFs().Delete(t.Context(), []intent.VNI{1001, 16777221, 253, 254, 255})...); err != nil {
		t.Error(err)
	}
	left := h.run("for t in 1001 16777221; do ip route show table $t; ip -6 route show table $t; done 2>/dev/null; ip route show table main; ip route show table default")
	if want := "blackhole 10.3.0.0/16 proto bgp metric 20 blackhole 10.0.0.0/8 proto 115 metric 173 blackhole 10.0.0.0/8 proto 115 metric 173"; strings.Join(strings.Fields(left), " ") != want {
		t.Errorf("left is %q, want %q", left, want)
	}
	if vrfs, err := path.VRFs().List(t.Context()); err != nil || len(vrfs) > 0 {
		t.Errorf("VRFs %v are left: %v", vrfs, err)
	}
}
