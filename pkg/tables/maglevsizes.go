package tables

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// maglevLines is how many VIPs of one change have a line each in the log.
const maglevLines = 32

// MaglevSizes tells when the Maglev tables of VIPs get another size, by an option or since there are
// more backends, or fewer: the flows of a conntrack miss then go by another table. It is safe for
// concurrent use.
type MaglevSizes struct {
	log   *slog.Logger
	count atomic.Uint64
}

// NewMaglevSizes makes one that tells of changes in a log.
func NewMaglevSizes(log *slog.Logger) *MaglevSizes { return &MaglevSizes{log: log} }

// MaglevChange is a VIP whose Maglev table gets another number of slots.
type MaglevChange struct {
	vip      intent.VIPKey
	from, to uint32
}

// MaglevChanges are those among the VIPs of a change; was is a VIP before it. A VIP that OVN
// balances has no table.
func MaglevChanges(set map[intent.VIPKey]intent.VIP, was func(intent.VIPKey) (intent.VIP, bool)) (out []MaglevChange) {
	for k, v := range set {
		if old, _ := was(k); old.Slots != 0 && v.Slots != 0 && old.Slots != v.Slots {
			out = append(out, MaglevChange{k, old.Slots, v.Slots})
		}
	}
	slices.SortFunc(out, func(a, b MaglevChange) int { return a.vip.Compare(b.vip) })
	return out
}

// Changed counts changes, and tells which they are in the log, or of many how many.
func (m *MaglevSizes) Changed(list []MaglevChange) {
	m.count.Add(uint64(len(list)))
	if len(list) > maglevLines {
		sizes := map[uint32]struct{}{}
		for _, c := range list {
			sizes[c.to] = struct{}{}
		}
		m.log.Info("the Maglev tables of many VIPs have another size", "vips", len(list), "to", slices.Sorted(maps.Keys(sizes)))
		return
	}
	for _, c := range list {
		m.log.Info("the Maglev table of a VIP has another size", "vip", c.vip, "from", c.from, "to", c.to)
	}
}

// Count is how many changes there were.
func (m *MaglevSizes) Count() uint64 { return m.count.Load() }
