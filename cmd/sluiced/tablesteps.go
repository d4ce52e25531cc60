package main

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// tableSteps tells when the tables of VIPs get another size, by an option or since there are
// more backends, or fewer: all flows that are not known then go by another table.
type tableSteps struct {
	log   *slog.Logger
	count atomic.Uint64
}

// tableStep is a VIP whose table gets another number of slots.
type tableStep struct {
	vip      intent.VIPKey
	from, to uint32
}

// stepsOf are those among the VIPs of a change; was is a VIP before it. What is OVN's has no
// table.
func stepsOf(set map[intent.VIPKey]intent.VIP, was func(intent.VIPKey) (intent.VIP, bool)) (steps []tableStep) {
	for k, v := range set {
		if old, _ := was(k); old.Slots != 0 && v.Slots != 0 && old.Slots != v.Slots {
			steps = append(steps, tableStep{k, old.Slots, v.Slots})
		}
	}
	slices.SortFunc(steps, func(a, b tableStep) int { return a.vip.Compare(b.vip) })
	return steps
}

// say counts, and says which they are in the log, or of many how many.
func (t *tableSteps) say(steps []tableStep) {
	t.count.Add(uint64(len(steps)))
	if len(steps) > tenantLines {
		sizes := map[uint32]struct{}{}
		for _, s := range steps {
			sizes[s.to] = struct{}{}
		}
		t.log.Info("the tables of many VIPs have another size", "vips", len(steps), "to", slices.Sorted(maps.Keys(sizes)))
		return
	}
	for _, s := range steps {
		t.log.Info("the table of a VIP has another size", "vip", s.vip, "from", s.from, "to", s.to)
	}
}
