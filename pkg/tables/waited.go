package tables

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Waited lists the tables of which rows have waited since before a time for something that no
// object of its own tells: waits has those that wait for what is missing, and what follows from
// that. The routes are walked only if a row of a gateway port has waited for so long.
func (t *Tables) Waited(before time.Time) []reconcile.Wait {
	return slices.DeleteFunc(t.waited(before), func(w reconcile.Wait) bool { return w.Rows == 0 })
}

func (t *Tables) waited(before time.Time) (out []reconcile.Wait) {
	t.Pipeline.View(func() {
		w := t.expected()
		for _, e := range t.order {
			if wait := e.Waited(t, w, before); wait.Table != "" { // a part says nothing of its own
				out = append(out, wait)
			}
		}
	})
	return out
}

// expected tells which waits need no word of their tables. It is used with the lock held.
type expected struct {
	*Tables
	cut func() map[intent.GatewayKey]intent.Gateway
	// vrfs are those with a gateway port that is missing something: what their VIPs and a change
	// of their path wait for names no gateway port.
	vrfs func() map[intent.VNI]bool
}

func (t *Tables) expected() expected {
	w := expected{Tables: t, cut: sync.OnceValue(t.cutLocked)}
	w.vrfs = sync.OnceValue(func() map[intent.VNI]bool {
		out := map[intent.VNI]bool{}
		Of(t, intent.Gateways).EachLocked(func(k intent.GatewayKey, g intent.Gateway) {
			if w.missing(k) {
				out[g.VNI] = true
			}
		})
		return out
	})
	return w
}

// missing tells whether what a gateway port lacks is nothing of Sluice's: its bridge, or OVN's
// patch port on it. waits tells that if it cuts a tenant.
func (w expected) missing(k intent.GatewayKey) bool {
	toOVN := intent.SteeringKey{Gateway: k, Kind: intent.SteerToOVN}
	return errors.Is(Of(w, intent.Bridges).AwaitedLocked(k.Bridge), reconcile.ErrMissing) ||
		errors.Is(Of(w, intent.SteeringFlows).AwaitedLocked(toOVN), reconcile.ErrMissing)
}

// idle tells the same, also where a gateway port is on another chassis or exposes nothing: its
// rows are prepared for the time when it comes, and nobody is cut before.
func (w expected) idle(k intent.GatewayKey) bool {
	if w.missing(k) {
		return true
	}
	if k.IsSegment() {
		return false
	}
	_, here := w.cut()[k]
	return !here
}

// route tells the same of a route. One to others leads through no gateway port.
func (w expected) route(_ intent.RouteKey, r intent.Route) bool {
	return r.Kind == intent.RouteLocal && w.missing(r.Gateway)
}
