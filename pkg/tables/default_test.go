package tables

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// An address of the default VRF is announced once packets for it come in by some
// device of the underlay, and without route targets; not while none does.
func TestDefaultVRFIsAnnouncedWhenADeviceTakesItsPackets(t *testing.T) {
	b := newBench()
	devices := newDriver[string, intent.UnderlayDevice]("device", &b.journal)
	Drive(b.drivers, intent.UnderlayDevices, devices)
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg})
	key := intent.NewHostKey(intent.DefaultVRF, netip.MustParseAddr("192.0.2.7"))
	back := intent.SteeringKey{Gateway: gw, Kind: intent.SteerRouted, Prefix: key.Prefix}
	want := func(devices ...string) {
		b.Pipeline.Update(func() {
			Of(b, intent.Bridges).Set(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}})
			b.SetVRFs(map[intent.VNI]intent.VRF{intent.DefaultVRF: {VNI: intent.DefaultVRF, Index: 1}})
			Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{gw: {Key: gw, VNI: intent.DefaultVRF}})
			b.SetRoutes(map[intent.RouteKey]intent.Route{key: {Key: key, Kind: intent.RouteLocal, Gateway: gw}})
			Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{into: {Key: into}, back: {Key: back}})
			Of(b, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{key: {Key: key, Gateway: gw}})
			rows := map[string]intent.UnderlayDevice{}
			for _, d := range devices {
				rows[d] = intent.UnderlayDevice{Name: d}
			}
			Of(b, intent.UnderlayDevices).Set(rows)
		})
		b.passes(t)
	}
	announced := func(yes bool, when string) {
		t.Helper()
		if got := len(b.announced.rows) == 1; got != yes {
			_, err := Of(b, intent.Announcements).State(key)
			t.Errorf("%s: announced %v, %v", when, got, err)
		}
	}
	want()
	announced(false, "without a device")
	devices.fail, devices.failKey = errors.New("no such device"), "eth2"
	want("eth1", "eth2")
	announced(true, "with one device of two")
	if k, ok := b.SourceFlow(intent.DefaultVRF, gw, key.Prefix); !ok || k != back {
		t.Errorf("source flow %s, %v", k, ok)
	}
	b.flows.fail, b.flows.failKey = errors.New("refused"), back
	delete(b.flows.rows, back)
	b.Pipeline.RelistAll()
	b.passes(t)
	announced(false, "without the flow back")
	b.flows.fail = nil
	b.Pipeline.Update(func() { Of(b, intent.SteeringFlows).Touch(back) })
	b.passes(t)
	announced(true, "after it was mended")
	want()
	announced(false, "when the last device has gone")
}
