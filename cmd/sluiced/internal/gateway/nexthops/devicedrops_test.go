package nexthops

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/tunnel"
	"github.com/ovn-sluice/sluice/controlplane/nexthop"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A count that rises is told of, in the same words for as long as it does, and for a while
// after. The first look tells nothing, nor does what a device of the underlay gets and nobody wants.
func TestDeviceDropsRise(t *testing.T) {
	var d deviceDrops
	d.setUnderlay([]string{"eth0"})
	begin := time.Unix(1_700_000_000, 0)
	look := func(at time.Duration, vxlan, eth uint64) (told []link.Drops) {
		return d.take([]link.Drops{{Link: "sluice-vxlan", Direction: "tx", Kind: "dropped", Packets: vxlan}, {Link: "eth0", Direction: "rx", Kind: "dropped", Packets: eth},
			{Link: "sluice0", Direction: "rx", Kind: "errors"}}, begin.Add(at))
	}
	for _, s := range []struct {
		at         time.Duration
		vxlan, eth uint64
		told       bool
	}{
		{0, 7, 100, false}, {5 * time.Second, 7, 200, false}, {10 * time.Second, 9, 300, true}, {15 * time.Second, 9, 300, true}, {65 * time.Second, 10, 300, true},
		{124 * time.Second, 10, 300, true}, {125 * time.Second, 10, 300, false}, {130 * time.Second, 11, 300, true}, {135 * time.Second, 0, 0, true}, {300 * time.Second, 0, 0, false},
	} {
		var want []link.Drops
		if s.told {
			want = []link.Drops{{Link: "sluice-vxlan", Direction: "tx", Kind: "dropped"}}
		}
		if told := look(s.at, s.vxlan, s.eth); !slices.Equal(told, want) {
			t.Errorf("at %s: told of %+v, want %+v", s.at, told, want)
		}
	}
}

// Status names the device and the VTEPs that the packets may have been for.
func TestProblemsOfPaths(t *testing.T) {
	a := netip.MustParseAddr
	paths := map[netip.Addr]link.Path{
		a("192.0.2.1"): {Device: "eth0", MTU: 1400, DeviceMTU: 1500}, a("192.0.2.2"): {Device: "eth1", MTU: 1300, DeviceMTU: 1300}, a("192.0.2.3"): {Device: "eth1", MTU: 1300, DeviceMTU: 1300},
		a("192.0.2.4"): {Device: "eth0", MTU: 1500, DeviceMTU: 1500}, a("192.0.2.5"): {Refused: "blackhole"}, a("2001:db8::1"): {Device: "eth0", MTU: 1500, DeviceMTU: 9000},
	}
	h := NextHops{routed: true, narrow: narrowPaths(paths, 1500), lost: map[netip.Addr]string{a("192.0.2.5"): "blackhole"}}
	got := append(tooNarrow(h.narrow, 1500), lostNextHops(nexthop.Result{Lost: h.lost}, a("192.0.2.9"), len(paths), "")...)
	got = append(got, lostNextHops(nexthop.Result{CutOff: true}, a("192.0.2.9"), len(paths), "")...)
	got = append(got, droppingDevices([]link.Drops{{Link: "sluice-vxlan", Direction: "tx", Kind: "errors"}, {Link: "eth0", Direction: "tx", Kind: "dropped"}}, h.suspects())...)
	for i, want := range []struct{ kind, key, reason, word string }{
		{"vtep", "192.0.2.1", reason.PathMTU, "1400 bytes, by device eth0"},
		{"device", "eth1", reason.PathMTU, "eth1 has MTU 1300, and the underlay's MTU was 1500"},
		{"vtep", "192.0.2.5", reason.RouteUnreachable, "(blackhole)"},
		{"vtep", "all", reason.CutOff, "any of 6 VTEPs"},
		{"device", "eth0", reason.DeviceDrops, "it counts tx dropped"},
		{"device", "sluice-vxlan", reason.DeviceDrops, "it counts tx errors; see 'ip -s link show sluice-vxlan'"},
	} {
		if i >= len(got) {
			t.Fatalf("%d objects: %+v", len(got), got)
		}
		if o := got[i]; o.Kind != want.kind || o.Key != want.key || o.Reason != want.reason || !strings.Contains(o.Error, want.word) {
			t.Errorf("got %+v, want %+v", o, want)
		}
	}
	if last := got[len(got)-1]; !strings.Contains(last.Error, "narrow path or none: 192.0.2.5 (blackhole), 192.0.2.1 (MTU 1400), 192.0.2.2 (MTU 1300), 192.0.2.3 (MTU 1300)") || last.State != status.Warning {
		t.Errorf("%+v", last)
	}
}

// A node without its own VTEP begins with that. Neither it nor a node that knows no VTEP any
// more is told that its paths are well.
func TestProblemsOfNodeThatIsCutOff(t *testing.T) {
	for _, own := range []netip.Addr{netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")} {
		for _, tt := range []struct {
			all    int
			noVTEP string
			want   []string
		}{
			{3, "", []string{"to any of 3 VTEPs, and none to a BGP neighbour", "links and routes", "(src " + own.String() + ")"}},
			{0, "", []string{"to a BGP neighbour, and knows no VTEP", "(src " + own.String() + ")"}},
			{3, tunnel.VTEPLost(own, "lo", ""), []string{"first repair", own.String() + " is gone from device lo", "(src " + own.String() + ")"}},
			{3, tunnel.VTEPLost(own, "lo", "lo"), []string{"first repair", "the device lo with the VTEP " + own.String() + " is down"}},
		} {
			got := lostNextHops(nexthop.Result{CutOff: true}, own, tt.all, tt.noVTEP)
			for _, want := range tt.want {
				if len(got) != 1 || !strings.Contains(got[0].Error, want) {
					t.Errorf("%d VTEPs, %q: no %q in %+v", tt.all, tt.noVTEP, want, got)
				}
			}
		}
	}
	if got := new(NextHops).suspects(); !strings.Contains(got, "no route to any VTEP") {
		t.Error(got)
	}
	if got := (&NextHops{routed: true}).suspects(); !strings.Contains(got, "carry whole packets") {
		t.Error(got)
	}
}
