package evpn

import (
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// bridges are the provider bridges of the router's annotated gateway ports that
// are here or may come (decision 0007).
func (t *translation) bridges(here []ovn.GatewayPort) []intent.BridgeKey {
	var out []intent.BridgeKey
	for _, p := range slices.Concat(here, t.rows.GatewayPortsToCome(t.out.Router)) {
		if !p.HasLocalnet || !nameGateway(t.rows, t.cfg, p).usable() {
			continue
		}
		if bridge, ok := t.rows.BridgeOf(p.Localnet.Options[optionNetwork]); ok {
			out = append(out, intent.BridgeKey(bridge))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// countBridges counts the routers that use a bridge. before keeps the count that
// a touched bridge had when the step began.
func (t *Translator) countBridges(bridges []intent.BridgeKey, by int, before map[intent.BridgeKey]int) {
	for _, k := range bridges {
		if _, ok := before[k]; !ok {
			before[k] = t.bridges[k]
		}
		if t.bridges[k] += by; t.bridges[k] == 0 {
			delete(t.bridges, k)
		}
	}
}

func (t *Translator) bridgeDelta(before map[intent.BridgeKey]int) wanted.Delta[intent.BridgeKey, intent.Bridge] {
	old, next := map[intent.BridgeKey]intent.Bridge{}, map[intent.BridgeKey]intent.Bridge{}
	for k, n := range before {
		if n > 0 {
			old[k] = intent.Bridge{Name: k}
		}
		if t.bridges[k] > 0 {
			next[k] = intent.Bridge{Name: k}
		}
	}
	return wanted.NewDelta(old, next)
}
