package kernel

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Names fit into IFNAMSIZ for every VNI, and no two devices share one.
func TestVRFNames(t *testing.T) {
	seen := map[string]string{}
	addresses := map[intent.MAC]string{}
	for _, vni := range []intent.VNI{1, 253, 1001, 999999, 1000000, 9999999, intent.MaxVNI} {
		for _, n := range []named{vrfOf(vni), bridgeOf(vni), innerOf(vni), outerOf(vni), vxlanOf(vni), dummyOf(vni)} {
			if len(n.name) > 15 {
				t.Errorf("%s has %d characters", n.name, len(n.name))
			}
			if other := seen[n.name]; other != "" {
				t.Errorf("%s is %s and %s", n.name, other, n.mark)
			}
			if other := addresses[n.mac]; other != "" {
				t.Errorf("%s is %s and %s", n.mac, other, n.name)
			}
			seen[n.name], addresses[n.mac] = n.mark, n.name
			got, _, ok := vrfOfMark(n.mark)
			if !ok || got != vni {
				t.Errorf("mark %s is of VNI %d, %t", n.mark, got, ok)
			}
		}
		for _, number := range []int{0, maxEnds - 1} {
			key := intent.VRFPortKey{Bridge: "br-provider-net", VLAN: 4094, VNI: vni}
			vrf, bridge := endsOf(key, number)
			if len(vrf.name) > 15 || len(bridge.name) > 15 || len(vrf.mark) > maxMark || len(bridge.mark) > maxMark {
				t.Errorf("%s (%s), %s (%s)", vrf.name, vrf.mark, bridge.name, bridge.mark)
			}
			if got, ok := portOfMark(vrf.mark, markVRFEnd); !ok || got != key {
				t.Errorf("mark %s is of %v, %t", vrf.mark, got, ok)
			}
			if got, ok := portOfMark(bridge.mark, markBridgeEnd); !ok || got != key {
				t.Errorf("mark %s is of %v, %t", bridge.mark, got, ok)
			}
		}
	}
	if vni, index, ok := vrfOfMark(indexMark(intent.MaxVNI, 65535)); !ok || vni != intent.MaxVNI || index != 65535 {
		t.Errorf("%d %d %t", vni, index, ok)
	}
	for _, mark := range []string{"sluice:vrf:0", "sluice:vrf:16777216", "sluice:vrf:x", "sluice:vrf-port:1:0:br", "sluice:fabric", "sluice:vrf-index:7", "eth0"} {
		if vni, _, ok := vrfOfMark(mark); ok {
			t.Errorf("mark %s is of VNI %d", mark, vni)
		}
	}
}

func TestTables(t *testing.T) {
	for _, tt := range []struct {
		vrf  intent.KernelVRF
		want []uint32
	}{
		{intent.KernelVRF{VNI: 1001, Index: 7}, []uint32{1001, 16777223}},
		{intent.KernelVRF{VNI: 252, Index: 1}, []uint32{252, 16777217}},
		{intent.KernelVRF{VNI: 253, Index: 1}, []uint32{16777217}},
		{intent.KernelVRF{VNI: 254, Index: 2}, []uint32{16777218}},
		{intent.KernelVRF{VNI: 255, Index: 65535}, []uint32{16842751}},
		{intent.KernelVRF{VNI: intent.MaxVNI, Index: 3}, []uint32{16777215, 16777219}},
	} {
		if got := tables(tt.vrf); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %d, want %d", tt.vrf, got, tt.want)
		}
	}
}

func TestGatewayMarks(t *testing.T) {
	long := netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666")
	v4 := netip.MustParseAddr("255.255.255.255")
	key := intent.GatewayKey{MAC: intent.MAC{1, 2, 3, 4, 5, 6}}
	for _, g := range []intent.KernelGateway{
		{Key: key},
		{Key: key, MTU: 1442, Addr4: v4},
		{Key: key, Addr6: long, ICMPSource4: v4},
		{Key: key, MTU: 65535, Addr4: v4, Addr6: long, ICMPSource4: v4, ICMPSource6: long},
	} {
		got := intent.KernelGateway{Key: g.Key}
		for _, mark := range gatewayMarks(endName(intent.MaxVNI, maxEnds-1), g) {
			if len(mark) > maxMark {
				t.Errorf("%s has %d characters", mark, len(mark))
			}
			if mac, ok := readGatewayMark(mark, &got); !ok || mac != g.Key.MAC {
				t.Errorf("%s is of %s, %t", mark, mac, ok)
			}
		}
		if got != g {
			t.Errorf("%+v, want %+v", got, g)
		}
	}
}

func FuzzGatewayMark(f *testing.F) {
	for _, mark := range gatewayMarks("sv1-0", intent.KernelGateway{MTU: 1, Addr4: netip.MustParseAddr("192.0.2.1")}) {
		f.Add(mark)
	}
	f.Fuzz(func(_ *testing.T, mark string) {
		var g intent.KernelGateway
		_, _ = readGatewayMark(mark, &g)
		_, _ = portOfMark(mark, markVRFEnd)
		_, _, _ = vrfOfMark(mark)
	})
}
