package moves

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestTenantsInTheLog(t *testing.T) {
	var log bytes.Buffer
	text := slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})
	rows := ovn.NewRows()
	rows.Apply([]ovn.Change{
		{Table: ovn.TableDatapathBinding, UUID: "r", New: ovn.DatapathBinding{UUID: "r", ExternalIDs: map[string]string{"logical-router": "x", "name": "red"}}},
		{Table: ovn.TablePortBinding, UUID: "p", New: ovn.PortBinding{UUID: "p", LogicalPort: "cr-red", Datapath: "r"}},
	})
	key := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	moved := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	set := func(k intent.GatewayKey, vni intent.VNI) wanted.Delta[intent.GatewayKey, intent.Gateway] {
		return wanted.Delta[intent.GatewayKey, intent.Gateway]{Set: map[intent.GatewayKey]intent.Gateway{k: {Key: k, VNI: vni, LogicalPort: "cr-red"}}}
	}
	vrf := func(vni intent.VNI, index uint16) wanted.Delta[intent.VNI, intent.VRF] {
		return wanted.Delta[intent.VNI, intent.VRF]{Set: map[intent.VNI]intent.VRF{vni: {VNI: vni, Index: index}}}
	}
	tn := PortLog{log: slog.New(text), routerID: netip.MustParseAddr("192.0.2.1")}
	tn.Begin(wanted.NewSet())
	otherMAC := set(moved, 1002)
	otherMAC.Delete = []intent.GatewayKey{key}
	otherVNI := vrf(1002, 2)
	otherVNI.Delete = []intent.VNI{1001}
	crowd := wanted.Delta[intent.VNI, intent.VRF]{Set: map[intent.VNI]intent.VRF{}}
	for i := range uint16(portLines + 1) {
		crowd.Set[intent.VNI(i)+1] = intent.VRF{VNI: intent.VNI(i) + 1, Index: i + 10}
	}
	for _, step := range []struct {
		diff wanted.Difference
		want string
	}{
		{wanted.With(wanted.With(wanted.Difference{}, intent.VRFs, vrf(1001, 1)), intent.Gateways, set(key, 1001)),
			"msg=\"VRF added\" vni=1001 rd=192.0.2.1:1\nmsg=\"gateway port joined its VRF\" port=cr-red router=red vni=1001\n"},
		{wanted.With(wanted.With(wanted.Difference{}, intent.VRFs, vrf(1001, 1)), intent.Gateways, set(key, 1001)), ""},
		{wanted.With(wanted.With(wanted.Difference{}, intent.VRFs, otherVNI), intent.Gateways, set(key, 1002)),
			"msg=\"VRF added\" vni=1002 rd=192.0.2.1:2\nmsg=\"VRF deleted\" vni=1001 rd=192.0.2.1:1\nmsg=\"gateway port changed its VNI\" port=cr-red router=red vni=1002 was=1001\n"},
		{wanted.With(wanted.Difference{}, intent.Gateways, otherMAC), ""},
		{wanted.With(wanted.Difference{}, intent.Gateways, wanted.Delta[intent.GatewayKey, intent.Gateway]{Delete: []intent.GatewayKey{moved}}),
			"msg=\"gateway port left its VRF\" port=cr-red router=red vni=1002\n"},
		{wanted.With(wanted.Difference{}, intent.VRFs, crowd), fmt.Sprintf("msg=\"many tenants of this node changed\" changes=%d vrfs=%d gateways=0 standby=0\n", portLines+1, portLines+2)},
	} {
		log.Reset()
		tn.Take(rows, step.diff)
		if got := strings.TrimLeft(log.String(), " "); got != step.want {
			t.Errorf("got\n%swant\n%s", got, step.want)
		}
	}
}

// Of gateway ports that stand by those count whose VRF has none here, and of those that do no
// longer those that have come.
func TestMovingGatewayPorts(t *testing.T) {
	key := func(i byte) intent.GatewayKey {
		return intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, i}}
	}
	tn := PortLog{gateways: map[intent.GatewayKey]intent.Gateway{}, standby: map[intent.GatewayKey]intent.Place{}}
	for i, g := range []struct {
		vni     intent.VNI
		standby bool
	}{{1001, true}, {1002, true}, {1002, false}, {1003, false}, {1004, true}} {
		tn.gateways[key(byte(i))] = intent.Gateway{Key: key(byte(i)), VNI: g.vni}
		if g.standby {
			tn.standby[key(byte(i))] = intent.Place{}
		}
	}
	got := tn.Elsewhere(map[intent.GatewayKey]intent.Place{key(0): {}, key(1): {}})
	if !maps.Equal(got, map[intent.VNI]bool{1001: true}) {
		t.Errorf("%v", got)
	}
	if got := tn.Elsewhere(nil); len(got) > 0 {
		t.Errorf("of no change %v", got)
	}
	d := wanted.With(wanted.With(wanted.Difference{}, intent.Standby, wanted.Delta[intent.GatewayKey, intent.Place]{Delete: []intent.GatewayKey{key(0), key(4)}}), intent.Gateways, wanted.Delta[intent.GatewayKey, intent.Gateway]{Delete: []intent.GatewayKey{key(4)}})
	gone := map[intent.RouteKey]intent.Announcement{intent.NewHostKey(1003, netip.MustParseAddr("10.0.0.1")): {}}
	if got := tn.Moving(gone, d); !maps.Equal(got, map[intent.VNI]bool{1001: true, 1003: true}) {
		t.Errorf("of 1001 a port comes, of 1003 one goes, and that of 1004 is deleted: %v", got)
	}
}
