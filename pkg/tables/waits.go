package tables

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// WaitReports is the source of objects that wait for something outside of Sluice.
const WaitReports = "waits"

// Patience is how long a wait for something that Sluice does not make is none of an
// operator's business: ovs-vswitchd and ovn-controller answer within it also when they start.
const Patience = 5 * time.Second

// waits turns the long waits of a table's rows into problems of objects. It has no clock of
// its own: a row that waits is tried again, and each try is an event.
type waits[K, O comparable] struct {
	rep *status.Reporter
	// of is the object that a row is a part of, and look returns what is said of one; no
	// kind: nothing is amiss.
	of   func(K) O
	look func() func(O, error) status.Object
	now  func() time.Time

	mu    sync.Mutex // a table with a place of Early is observed twice at a time
	since map[K]time.Time
	told  map[O]told[K]
}

// told is what was said of an object, and which rows are why.
type told[K comparable] struct {
	object status.Object
	rows   map[K]struct{}
}

func newWaits[K, O comparable](reg *status.Registry, of func(K) O, look func() func(O, error) status.Object) *waits[K, O] {
	return &waits[K, O]{rep: reg.Reporter(WaitReports), of: of, look: look, now: time.Now, since: map[K]time.Time{}, told: map[O]told[K]{}}
}

func itself[K comparable](k K) K { return k }

func (w *waits[K, O]) observe(events []reconcile.Event[K]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	say := sync.OnceValue(w.look)
	for _, e := range events {
		if errors.Is(e.Err, reconcile.ErrMissing) {
			w.wait(e.Key, e.Err, say)
		} else {
			w.end(e.Key)
		}
	}
}

func (w *waits[K, O]) wait(k K, err error, say func() func(O, error) status.Object) {
	since, waited := w.since[k]
	if !waited {
		w.since[k] = w.now()
		return
	}
	if w.now().Sub(since) < Patience {
		return
	}
	o := say()(w.of(k), err)
	if o.Kind == "" {
		w.unsay(k)
		return
	}
	o.State, o.Reason = status.Error, reason.Missing
	t := w.told[w.of(k)]
	if t.rows == nil {
		t.rows = map[K]struct{}{}
	}
	t.object, t.rows[k] = o, struct{}{}
	w.told[w.of(k)] = t
	w.rep.Set(o)
}

func (w *waits[K, O]) end(k K) {
	if _, waited := w.since[k]; waited {
		delete(w.since, k)
		w.unsay(k)
	}
}

func (w *waits[K, O]) unsay(k K) {
	t, had := w.told[w.of(k)]
	if !had {
		return
	}
	if delete(t.rows, k); len(t.rows) == 0 {
		delete(w.told, w.of(k))
		w.rep.Delete(t.object.Kind, t.object.Key)
	}
}

// waitsFor is the sentence of an ErrMissing without the word for it.
func waitsFor(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+reconcile.ErrMissing.Error())
}

// bridgeWaits names a bridge that is missing, with the tenants that it cuts. One that only
// gateway ports on another chassis are to come to cuts nobody.
func (t *Tables) bridgeWaits() func(intent.BridgeKey, error) status.Object {
	needs := map[intent.BridgeKey][]string{}
	for k, g := range t.cutGateways() {
		needs[k.Bridge] = append(needs[k.Bridge], fmt.Sprintf("%s (VRF %s)", g.LogicalPort, g.VNI))
	}
	return func(b intent.BridgeKey, err error) status.Object {
		if len(needs[b]) == 0 {
			return status.Object{}
		}
		return status.Object{Kind: "bridge", Key: string(b), Error: fmt.Sprintf("%s; gateway ports on it: %s", waitsFor(err), some(needs[b]))}
	}
}

// gatewayWaits names a gateway port that waits, with its tenant.
func (t *Tables) gatewayWaits() func(intent.GatewayKey, error) status.Object {
	cut := t.cutGateways()
	return func(k intent.GatewayKey, err error) status.Object {
		g, is := cut[k]
		if !is {
			return status.Object{}
		}
		return status.Object{Kind: "gateway", Key: cmp.Or(g.LogicalPort, k.String()), Error: fmt.Sprintf("VRF %s waits: %s", g.VNI, waitsFor(err))}
	}
}

// cutGateways are the gateway ports whose tenants are cut while they wait: a port that is on
// another chassis, or exposes nothing, is none.
func (t *Tables) cutGateways() (cut map[intent.GatewayKey]intent.Gateway) {
	t.Pipeline.View(func() { cut = t.cutLocked() })
	return cut
}

func (t *Tables) cutLocked() map[intent.GatewayKey]intent.Gateway {
	cut := map[intent.GatewayKey]intent.Gateway{}
	exposes := func(_ intent.RouteKey, r intent.Route) {
		if g, wanted := Of(t, intent.Gateways).LookupLocked(r.Gateway); wanted && r.Kind == intent.RouteLocal {
			cut[r.Gateway] = g
		}
	}
	Of(t, intent.Routes).EachLocked(exposes)
	Of(t, intent.KernelRoutes).EachLocked(exposes)
	return cut
}

func flowGateway(k intent.SteeringKey) intent.GatewayKey { return k.Gateway }

// mostNamed bounds the gateway ports that one sentence names.
const mostNamed = 8

func some(names []string) string {
	slices.Sort(names)
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}
