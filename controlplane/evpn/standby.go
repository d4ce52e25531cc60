package evpn

import (
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// toCome lists the gateway ports of the router that are elsewhere and may come.
func (t *translation) toCome() []ovn.GatewayPort {
	if !t.cfg.Standby {
		return nil
	}
	var out []ovn.GatewayPort
	for _, p := range t.rows.GatewayPortsToCome(t.out.Router) {
		if p.Binding.Chassis != t.chassis {
			out = append(out, p)
		}
	}
	return out
}

// standby translates a gateway port that may come. What is worth knowing of its
// router is said where the port is; what is wrong with this node is said here.
func (t *translation) standby(p ovn.GatewayPort) (GatewayResult, bool) {
	t.quiet = true
	g, ok := t.gateway(p)
	t.quiet = false
	if !ok {
		return g, false
	}
	g.Standby, g.Place.Gateway = true, g.Gateway.Key
	where := "it is bound to no chassis"
	if p.Binding.Chassis != "" {
		g.Place.Chassis, g.Place.At = t.rows.ChassisAt(p.Binding.Chassis)
		where = "it is bound to another chassis"
		if g.Place.Chassis != "" {
			where = "it is bound to chassis " + g.Place.Chassis
		}
	}
	t.note(kindGateway, p.Binding.LogicalPort, reason.Standby, where+" and may move here; everything but its routes is programmed")
	return g, true
}

// relay is the route of a destination that is behind a gateway port elsewhere:
// without next hops while it is not known where.
func (m member) relay(key intent.RouteKey) intent.Route {
	r := intent.Route{Key: key, Kind: intent.RouteRemote}
	if at := m.Place.At; at.VTEP.IsValid() {
		r.NextHops = intent.NewNextHopSet(intent.NextHop{VTEP: at.VTEP, VNI: key.VNI, RouterMAC: at.RouterMAC})
	}
	return r
}

// standbyOnly tells whether no gateway port of a VRF is here.
func standbyOnly(members []member) bool {
	for _, m := range members {
		if !m.Standby {
			return false
		}
	}
	return true
}

// makeRoom takes the places of VRFs of which no gateway port is here, the highest
// VNI first, for those of which one has come, and adds them to the step. It is
// called when the members of all VNIs of the step are known.
func (t *Translator) makeRoom(step *step) {
	need := -(t.cfg.maxVRFs() - t.admitted)
	for vni, members := range step.members {
		if s := t.vrfs[vni]; len(members) > 0 && !standbyOnly(members) && (s == nil || s.index == 0) {
			need++
		}
	}
	if need <= 0 {
		return
	}
	idle := map[intent.VNI]struct{}{}
	for vni, s := range t.vrfs {
		members, touched := step.members[vni]
		if s.index != 0 && (touched && len(members) > 0 && standbyOnly(members) || !touched && s.standby) {
			idle[vni] = struct{}{}
		}
	}
	order := sortedVNIs(idle)
	for i := len(order) - 1; i >= 0 && need > 0; i-- {
		t.touch(step, order[i])
		t.evict(order[i])
		need--
	}
}
