package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	// trimEvery is how often the allocations are looked at. A burst is over when
	// less than quietBytes are allocated in that time, and worth a collection from a
	// quarter of what is live on, and burstBytes.
	trimEvery  = 2 * time.Second
	quietBytes = 2 << 20
	burstBytes = 8 << 20
)

// Limit sets the pace of collections: by how many percent the heap may grow until the
// next one. The environment's GOGC takes its place.
func Limit(growth int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
}

// Trim gives memory back after bursts, until ctx ends.
func Trim(ctx context.Context) error {
	var t trimmer
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	for loop.Sleep(ctx, beat.Until(trimEvery)) {
		metrics.Read(sample)
		if t.due(sample[0].Value.Uint64(), sample[1].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
	return nil
}

// trimmer tells when a burst of allocations is over.
type trimmer struct{ last, trimmed uint64 }

// due takes the bytes that were allocated since the start, and those that were live after
// the last collection.
func (t *trimmer) due(allocated, live uint64) bool {
	quiet := allocated-t.last < quietBytes
	t.last = allocated
	if !quiet || allocated-t.trimmed < max(burstBytes, live/4) {
		return false
	}
	t.trimmed = allocated
	return true
}
