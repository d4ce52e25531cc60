package tables

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Each table tells of its rows that wait for long, with what they wait for; but not of those
// that wait since a bridge or a patch port is missing, which is told already, or only for the
// time when a gateway port comes to this node.
func TestWaited(t *testing.T) {
	waits := reconcile.Unchanged(fmt.Errorf("for the device: %w", reconcile.ErrNotReady))
	missing := reconcile.Unchanged(fmt.Errorf("it is not there: %w", reconcile.ErrMissing))
	standby := func(b *bench) {
		b.SetRoutes(nil)
		Of(b, intent.Announcements).Set(nil)
	}
	served := func(k intent.GatewayKey) func(*bench) {
		return func(b *bench) {
			key := intent.ServedKey{Gateway: k, Prefix: netip.MustParsePrefix("10.0.0.9/32")}
			Of(b, intent.ServedNextHops).Set(map[intent.ServedKey]intent.Served{key: {Key: key}})
			b.drivers[intent.ServedNextHops].(*mapDriver[intent.ServedKey, intent.Served]).fail = waits
			standby(b)
		}
	}
	vip := func(b *bench) {
		k := intent.VIPKey{VNI: 1001, Protocol: intent.TCP, Addr: other.Prefix.Addr(), Port: 80}
		b.SetVIPs(map[intent.VIPKey]intent.VIP{k: {Key: k}})
		b.vips.fail = waits
	}
	for _, c := range []struct {
		what  string
		fail  func(*bench)
		set   func(*bench)
		wants []string
	}{
		{"all is there", nil, nil, nil},
		{"a gateway waits", func(b *bench) { b.gateways.fail = waits }, nil, []string{"gateways", "announcements"}},
		{"flows wait", func(b *bench) { b.flows.fail = waits }, nil, []string{"steering", "announcements"}},
		{"route targets wait", func(b *bench) { b.policies.fail = waits }, nil, []string{"policies", "announcements"}},
		{"a VRF waits", func(b *bench) { b.vrfs.fail = waits }, nil, []string{"vrfs", "announcements"}},
		{"a route waits", func(b *bench) { b.routesThere.fail = waits }, nil, []string{"routes", "announcements"}},
		{"a VIP waits", nil, vip, []string{"vips"}},
		{"the bridge waits for the databases", func(b *bench) { b.bridges.fail = waits }, nil, []string{"bridges", "announcements"}},
		{"the bridge is missing", func(b *bench) {
			b.bridges.fail, b.gateways.fail, b.flows.fail, b.routesThere.fail = missing, waits, waits, waits
		}, vip, nil},
		{"the patch port is missing", func(b *bench) { b.flows.fail = missing }, vip, nil},
		{"the gateway port is elsewhere", func(b *bench) { b.gateways.fail, b.flows.fail = waits, waits }, standby, nil},
		{"so are its addresses", nil, served(gw), nil},
		{"addresses of a provider network wait", nil, served(gw.Segment()), []string{"served"}},
		{"its bridge is missing", func(b *bench) { b.bridges.fail = missing }, served(gw.Segment()), nil},
	} {
		b := newBench()
		if c.fail != nil {
			c.fail(b)
		}
		b.want(true)
		if c.set != nil {
			b.Pipeline.Update(func() { c.set(b) })
		}
		b.passes(t)
		var tables []string
		for _, w := range b.Waited(time.Now()) {
			tables = append(tables, w.Table)
			if w.Rows == 0 || w.Key == "" || w.Err == nil {
				t.Errorf("%s: %+v", c.what, w)
			}
		}
		if !slices.Equal(tables, c.wants) {
			t.Errorf("%s: %v, want %v", c.what, tables, c.wants)
		}
	}
}

func TestEveryTableIsAskedWhatWaits(t *testing.T) {
	b := newBench()
	var asked, stages []string
	for _, w := range b.waited(time.Now()) {
		asked = append(asked, w.Table)
	}
	for _, s := range b.Pipeline.Stages() {
		stages = append(stages, s.Name())
	}
	slices.Sort(asked)
	slices.Sort(stages)
	if !slices.Equal(asked, stages) {
		t.Errorf("asked %v of %v", asked, stages)
	}
}

// A device of the underlay that is not there is an object of its own.
func TestDeviceThatIsNotThereIsNotToldTwice(t *testing.T) {
	b := newBench()
	devices := newDriver[string, intent.UnderlayDevice]("device", &b.journal)
	devices.fail = reconcile.Unchanged(fmt.Errorf("%w: there is no such device", reconcile.ErrNotReady))
	Drive(b.drivers, intent.UnderlayDevices, devices)
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	b.Pipeline.Update(func() { Of(b, intent.UnderlayDevices).Set(map[string]intent.UnderlayDevice{"eth7": {Name: "eth7"}}) })
	b.passes(t)
	if w := Of(b, intent.UnderlayDevices).Waited(time.Now()); w.Rows != 1 {
		t.Errorf("the device does not wait: %+v", w)
	}
	if w := b.Waited(time.Now()); len(w) > 0 {
		t.Errorf("told: %+v", w)
	}
}
