package tables

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A wait for something that Sluice does not make becomes a problem of its object when it
// lasts, one for all rows of the object, and goes with the last of them.
func TestLongWait(t *testing.T) {
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	now := time.Unix(0, 0)
	w := newWaits(reg, flowGateway, func() func(intent.GatewayKey, error) status.Object {
		return func(k intent.GatewayKey, err error) status.Object {
			return status.Object{Kind: "gateway", Key: k.String(), Error: waitsFor(err)}
		}
	})
	w.now = func() time.Time { return now }
	missing := fmt.Errorf("bridge br-ex has no patch port yet: %w", reconcile.ErrMissing)
	for _, step := range []struct {
		what  string
		after time.Duration
		key   intent.SteeringKey
		err   error
		told  bool
	}{
		{"it begins", 0, into, missing, false},
		{"it lasts less than the patience", Patience - 1, into, missing, false},
		{"it lasts", 1, into, missing, true},
		{"a second row begins", 0, back, missing, true},
		{"and lasts", Patience, back, missing, true},
		{"the first row is there", 0, into, nil, true},
		{"the second row waits for a row of Sluice's", 0, back, reconcile.ErrNotReady, false},
		{"it waits anew", 0, back, missing, false},
		{"and lasts", Patience, back, missing, true},
		{"it fails", 0, back, errors.New("no"), false},
		{"a row waits for another row for long", 0, into, reconcile.ErrNotReady, false},
		{"and still", time.Hour, into, reconcile.ErrNotReady, false},
	} {
		now = now.Add(step.after)
		w.observe([]reconcile.Event[intent.SteeringKey]{{Key: step.key, Err: step.err}})
		problems := reg.Problems()
		if told := len(problems) == 1; told != step.told {
			t.Errorf("%s: problems %+v", step.what, problems)
		}
		for _, o := range problems {
			if o.Reason != reason.Missing || o.State != status.Error || o.Key != gw.String() || o.Error != "bridge br-ex has no patch port yet" {
				t.Errorf("%s: %+v", step.what, o)
			}
		}
	}
}

// What is said names bridge or port and tenants of both families; a gateway port that is on
// standby is cut from nothing.
func TestWhoWaits(t *testing.T) {
	for _, family := range []string{"10.0.0.1", "fd00::1"} {
		b := newBench()
		b.want(true)
		standby := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
		alone := intent.GatewayKey{Bridge: "br-two", MAC: intent.MAC{2, 0, 0, 0, 0, 3}}
		k := intent.NewHostKey(1001, netip.MustParseAddr(family))
		b.Pipeline.Update(func() {
			Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{
				gw: {Key: gw, VNI: 1001, LogicalPort: "lrp-red"}, standby: {Key: standby, VNI: 2001, LogicalPort: "lrp-blue"},
				alone: {Key: alone, VNI: 2001, LogicalPort: "lrp-blue2"},
			})
			b.SetRoutes(map[intent.RouteKey]intent.Route{k: {Key: k, Kind: intent.RouteLocal, Gateway: gw}})
		})
		missing := fmt.Errorf("bridge br-ex is not in Open vSwitch: %w", reconcile.ErrMissing)
		o := b.bridgeWaits()("br-ex", missing)
		if o.Kind != "bridge" || o.Key != "br-ex" || o.Error != "bridge br-ex is not in Open vSwitch; gateway ports on it: lrp-red (VRF 1001)" {
			t.Errorf("%+v", o)
		}
		if o := b.bridgeWaits()("br-two", missing); o.Kind != "" {
			t.Errorf("a bridge for standby alone: %+v", o)
		}
		look := b.gatewayWaits()
		if o := look(gw, missing); o.Kind != "gateway" || o.Key != "lrp-red" || !strings.Contains(o.Error, "VRF 1001 waits: bridge br-ex") {
			t.Errorf("%+v", o)
		}
		if o := look(standby, missing); o.Kind != "" {
			t.Errorf("standby: %+v", o)
		}
	}
}

// A row that is tried again is told of by the pipeline alone.
func TestBridgeIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.bridges.fail = fmt.Errorf("bridge br-ex is not in Open vSwitch: %w", reconcile.ErrMissing)
	b.want(true)
	begun := time.Now()
	for deadline := begun.Add(10 * Patience); len(b.reg.Problems()) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was said of the bridge")
		}
		time.Sleep(b.Pipeline.Pass(t.Context()))
	}
	t.Logf("told after %s: %+v", time.Since(begun), b.reg.Problems())
	b.bridges.fail = nil
	b.Pipeline.Update(func() { Of(b, intent.Bridges).Touch("br-ex") })
	b.passes(t)
	if p := b.reg.Problems(); len(p) != 0 || len(b.announced.rows) != 1 {
		t.Errorf("when the bridge is there: %+v, %d announced", p, len(b.announced.rows))
	}
}
