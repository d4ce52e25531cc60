package ebpf

import (
	"errors"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Routes of the default VRF outlive the VRF that their gateways are in: one is a
// tenant's today, and without EVPN tomorrow. A gateway that changes its VRF gets
// another row of entries, and these routes follow it.

// follow keeps account of which routes of the default VRF refer to which entries.
func (s *store) follow(k intent.RouteKey, old, now bpfRoute) {
	if k.VNI != intent.DefaultVRF {
		return
	}
	if old.isLocal() {
		delete(s.defaults[old.Ref], k)
		if len(s.defaults[old.Ref]) == 0 {
			delete(s.defaults, old.Ref)
		}
	}
	if now.isLocal() {
		if s.defaults[now.Ref] == nil {
			s.defaults[now.Ref] = map[intent.RouteKey]bool{}
		}
		s.defaults[now.Ref][k] = now.isVIP()
	}
}

// moveDefaults has the routes of the default VRF that refer to an entry of a gateway
// refer to the one that it has now.
func (s *store) moveDefaults(from uint32, g intent.GatewayKey) error {
	var rows []reconcile.Row[intent.RouteKey, intent.Route]
	for k, vip := range s.defaults[from] {
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: g, VIP: vip}})
	}
	return errors.Join(s.applyRoutes(rows)...)
}
