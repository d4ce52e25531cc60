package moves

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// portLines is how many VRFs and gateway ports of one change have a line each in
// the log. Of more, as when another gateway node fails, their number is said.
const portLines = 32

// PortLog says in the log which VRFs and gateway ports come to this node and go.
type PortLog struct {
	log      *slog.Logger
	choice   func(intent.VNI) (evpn.Choice, bool)
	routerID netip.Addr
	vrfs     map[intent.VNI]intent.VRF
	// gateways are those that are here or may come, standby those that may come.
	gateways map[intent.GatewayKey]intent.Gateway
	standby  map[intent.GatewayKey]intent.Place
}

// NewPortLog makes one. choice is why a VRF is on its path.
func NewPortLog(log *slog.Logger, routerID netip.Addr, choice func(intent.VNI) (evpn.Choice, bool)) *PortLog {
	return &PortLog{log: log, routerID: routerID, choice: choice}
}

// AllElsewhere is Elsewhere of all gateway ports that stand by.
func (t *PortLog) AllElsewhere() map[intent.VNI]bool { return t.Elsewhere(t.standby) }

// Standby is how many gateway ports stand by.
func (t *PortLog) Standby() int { return len(t.standby) }

// Begin takes what there is when a node starts.
func (t *PortLog) Begin(all wanted.Set) {
	t.vrfs = maps.Collect(maps.All(wanted.Rows(all, intent.VRFs)))
	t.gateways, t.standby = maps.Collect(maps.All(wanted.Rows(all, intent.Gateways))), maps.Collect(maps.All(wanted.Rows(all, intent.Standby)))
	t.log.Info("tenants of this node", "vrfs", len(t.vrfs), "gateways", len(t.gateways)-len(t.standby), "standby", len(t.standby))
}

// portLine is a line that is still to be logged.
type portLine struct {
	message string
	attrs   []any
}

// Take follows a change of what OVN asks for. The names of routers are in rows.
func (t *PortLog) Take(rows *ovn.Rows, d wanted.Difference) {
	t.say(slices.Concat(t.vrfLines(wanted.Of(d, intent.VRFs)), t.gatewayLines(rows, d)))
}

func (t *PortLog) say(lines []portLine) {
	if len(lines) > portLines {
		t.log.Info("many tenants of this node changed", "changes", len(lines), "vrfs", len(t.vrfs),
			"gateways", len(t.gateways)-len(t.standby), "standby", len(t.standby))
		return
	}
	for _, l := range lines {
		t.log.Info(l.message, l.attrs...)
	}
}

func (t *PortLog) vrfLines(d wanted.Delta[intent.VNI, intent.VRF]) (lines []portLine) {
	for _, vni := range slices.Sorted(maps.Keys(d.Set)) {
		v := d.Set[vni]
		old, had := t.vrfs[vni]
		switch same := old; {
		case had && old.Path != v.Path:
			same.Path = v.Path
			if same == v {
				lines = append(lines, portLine{"VRF changes its path", append([]any{"vni", vni}, t.pathAttrs(vni)...)})
				break
			}
			fallthrough
		case old != v:
			lines = append(lines, portLine{"VRF added", append([]any{"vni", vni, "rd", t.rd(v)}, t.pathAttrs(vni)...)})
		}
		t.vrfs[vni] = v
	}
	for _, vni := range slices.Sorted(slices.Values(d.Delete)) {
		if old, ok := t.vrfs[vni]; ok {
			lines = append(lines, portLine{"VRF deleted", []any{"vni", vni, "rd", t.rd(old)}})
		}
		delete(t.vrfs, vni)
	}
	return lines
}

// pathAttrs are the path of a VRF, and why.
func (t *PortLog) pathAttrs(vni intent.VNI) []any {
	if t.choice == nil {
		return nil
	}
	c, _ := t.choice(vni)
	out := []any{"path", c.Path.String(), "reason", c.Reason}
	if c.Detail != "" {
		out = append(out, "detail", c.Detail)
	}
	return out
}

// Paths follows a change that facts of the node make.
func (t *PortLog) Paths(d wanted.Delta[intent.VNI, intent.VRF]) {
	t.say(t.vrfLines(d))
}

func (t *PortLog) rd(v intent.VRF) string {
	if v.VNI == intent.DefaultVRF {
		return "" // its routes have none
	}
	return fmt.Sprintf("%s:%d", t.routerID, v.Index)
}

// gatewayLines compares by the port's name: its key changes with its MAC address.
// Only what is here counts.
func (t *PortLog) gatewayLines(rows *ovn.Rows, d wanted.Difference) (lines []portLine) {
	keys := map[intent.GatewayKey]struct{}{}
	for _, list := range [][]intent.GatewayKey{wanted.Of(d, intent.Gateways).Delete, wanted.Of(d, intent.Standby).Delete} {
		for _, k := range list {
			keys[k] = struct{}{}
		}
	}
	for k := range wanted.Of(d, intent.Gateways).Set {
		keys[k] = struct{}{}
	}
	for k := range wanted.Of(d, intent.Standby).Set {
		keys[k] = struct{}{}
	}
	before := t.here(keys)
	patch(t.gateways, wanted.Of(d, intent.Gateways))
	patch(t.standby, wanted.Of(d, intent.Standby))
	after := t.here(keys)
	names := map[string]struct{}{}
	for _, m := range []map[string]intent.VNI{before, after} {
		for name := range m {
			names[name] = struct{}{}
		}
	}
	for _, port := range slices.Sorted(maps.Keys(names)) {
		was, had := before[port]
		now, has := after[port]
		where := []any{"port", port, "router", routerOf(rows, port)}
		switch {
		case !had:
			lines = append(lines, portLine{"gateway port joined its VRF", append(where, "vni", now)})
		case !has:
			lines = append(lines, portLine{"gateway port left its VRF", append(where, "vni", was)})
		case was != now:
			lines = append(lines, portLine{"gateway port changed its VNI", append(where, "vni", now, "was", was)})
		}
	}
	return lines
}

// here are those of the gateway ports that are on this node, with their VNIs.
func (t *PortLog) here(keys map[intent.GatewayKey]struct{}) map[string]intent.VNI {
	out := map[string]intent.VNI{}
	for k := range keys {
		g, ok := t.gateways[k]
		if _, away := t.standby[k]; ok && !away {
			out[g.LogicalPort] = g.VNI
		}
	}
	return out
}

func patch[K, V comparable](m map[K]V, d wanted.Delta[K, V]) {
	for _, k := range d.Delete {
		delete(m, k)
	}
	maps.Copy(m, d.Set)
}

// routerOf is the name of a port's router, while OVN shows it.
func routerOf(rows *ovn.Rows, port string) string {
	p, _ := rows.Port(port)
	dp, _ := rows.Datapath(p.Datapath)
	return dp.Name()
}
