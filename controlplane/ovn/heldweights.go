package ovn

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// optionHeldWeight begins the keys of NB_Global.options that hold the weight of a backend: then the _uuid of
// the Northbound row of Load_Balancer, a dash, and the backend. The owner of a load balancer may
// write its options as a whole, and knows nothing of weights; this row is nobody's as a whole.
// ovn-northd copies it to SB_Global. A key a backend: who writes one undoes no other.
const optionHeldWeight = "sluice-weight-"

// northboundID is the key of external_ids that ovn-northd names the Northbound row in.
const northboundID = "lb_id"

// lenUUID is the length of a _uuid as text.
const lenUUID = 36

// HeldWeightKey is the key of NB_Global.options that holds the weight of a backend.
func HeldWeightKey(balancer UUID, backend string) string {
	return optionHeldWeight + string(balancer) + "-" + backend
}

// HeldWeights are the weights that options of NB_Global or SB_Global hold, by the _uuid of
// the Northbound row of Load_Balancer, as options:sluice-weights has them.
func HeldWeights(options map[string]string) map[UUID]string {
	var out map[UUID]string
	for _, key := range slices.Sorted(maps.Keys(options)) {
		rest, ok := strings.CutPrefix(key, optionHeldWeight)
		if !ok || len(rest) < lenUUID+2 || rest[lenUUID] != '-' || !ovsdb.UUID(rest[:lenUUID]).Valid() {
			continue
		}
		if out == nil {
			out = map[UUID]string{}
		}
		id := UUID(rest[:lenUUID])
		word := rest[lenUUID+1:] + "=" + options[key]
		if list := out[id]; list != "" {
			word = list + "," + word
		}
		out[id] = word
	}
	return out
}

// Held are the weights that NB_Global, or SB_Global, holds for a load balancer, as
// options:sluice-weights has them.
func (r *Rows) Held(b LoadBalancer) string {
	id := cmp.Or(b.Northbound, b.UUID)
	for _, g := range r.globals {
		return g.Weights[id]
	}
	for _, g := range r.south.globals {
		return g.Weights[id]
	}
	return ""
}

// differs tells whether another row says something else.
func (g NBGlobal) differs(o NBGlobal) bool {
	return g.UUID != o.UUID || g.DefaultDrop != o.DefaultDrop || g.TableSize != o.TableSize || !maps.Equal(g.Weights, o.Weights)
}
