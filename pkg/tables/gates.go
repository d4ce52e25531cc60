package tables

import (
	"errors"
	"syscall"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The functions below open and close the gates of announcements when something
// that they depend on was programmed, removed or failed.

func (t *Tables) bridgesChanged(events []reconcile.Event[intent.BridgeKey]) {
	hit := keysOf(events)
	// Rows that name a bridge wait for its devices, and a device that was made
	// anew has another index and port number: what is there is read back.
	t.Pipeline.Update(func() {
		t.Gateways.Relist()
		t.Steering.Relist()
		t.Gateways.TouchWhere(func(k intent.GatewayKey, _ intent.Gateway) bool { return hit[k.Bridge] })
		t.Steering.TouchWhere(func(k intent.SteeringKey, _ intent.Steering) bool { return hit[k.Gateway.Bridge] })
		t.Announcements.TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway.Bridge] })
	})
}

func (t *Tables) vrfsChanged(events []reconcile.Event[intent.VNI]) {
	hit := keysOf(events)
	t.Pipeline.Update(func() {
		t.Announcements.TouchWhere(func(k intent.RouteKey, _ intent.Announcement) bool { return hit[k.VNI] })
	})
}

func (t *Tables) gatewaysChanged(events []reconcile.Event[intent.GatewayKey]) {
	hit := keysOf(events)
	t.Pipeline.Update(func() {
		t.Announcements.TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway] })
	})
}

func (t *Tables) steeringChanged(events []reconcile.Event[intent.SteeringKey]) {
	hit := map[intent.GatewayKey]bool{}
	for _, e := range events {
		if e.Key.Kind == intent.SteerToOVN {
			hit[e.Key.Gateway] = true
		}
	}
	if len(hit) == 0 {
		return
	}
	t.Pipeline.Update(func() {
		t.Announcements.TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway] })
	})
}

func (t *Tables) routesChanged(events []reconcile.Event[intent.RouteKey]) {
	t.Pipeline.Update(func() {
		for _, e := range events {
			if t.Announcements.WantedLocked(e.Key) {
				t.Announcements.Touch(e.Key)
			}
		}
	})
}

func keysOf[K comparable](events []reconcile.Event[K]) map[K]bool {
	keys := make(map[K]bool, len(events))
	for _, e := range events {
		keys[e.Key] = true
	}
	return keys
}

// ReasonOf is the word for a driver's error in status and metrics.
func ReasonOf(err error) string {
	switch {
	case errors.Is(err, reconcile.ErrForeign):
		return "foreign"
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.ENOMEM):
		return "full"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "permission"
	}
	return "failed"
}
