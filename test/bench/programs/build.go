package programs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	cilium "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Built is what it takes to write many VIPs at once.
type Built struct {
	VIPs, Backends int
	Took           time.Duration
	// Maps and Heap are bytes more than without a VIP: of the kernel's maps, and live ones
	// of the process.
	Maps, Heap int64
}

// RunBuild writes 10,000 VIPs of one to ten backends each, none of which is another
// one's, into data planes that have none.
func RunBuild(ctx context.Context, dir string, rounds int) (out []Built, err error) {
	for i := range rounds {
		b, err := build(ctx, filepath.Join(dir, fmt.Sprintf("build_%d", i)), 10_000)
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

func build(ctx context.Context, dir string, vips int) (out Built, err error) {
	d, err := loadLimited(dir, ebpf.Limits{})
	if err != nil {
		return out, err
	}
	defer d.Close()
	if err := fill(ctx, d, 1, 1, false); err != nil {
		return out, err
	}
	size, err := maglev.Size(10, 0)
	if err != nil {
		return out, err
	}
	var rows []reconcile.Row[intent.VIPKey, intent.VIP]
	for i := range vips {
		var list []intent.Backend
		for range i%10 + 1 {
			list = append(list, intent.Backend{Addr: nth(netip.MustParseAddr("10.10.0.1"), out.Backends), Port: 8080, Weight: 1})
			out.Backends++
		}
		k := intent.VIPKey{VNI: vni, Protocol: intent.TCP, Addr: nth(vips4, i), Port: 80}
		rows = append(rows, reconcile.Row[intent.VIPKey, intent.VIP]{Key: k, Value: intent.VIP{Key: k, Backends: intent.NewBackendSet(list...), Slots: uint32(size)}})
	}
	out.VIPs = vips
	maps, err := mapMemory(dir)
	if err != nil {
		return out, err
	}
	heap := liveHeap()
	begin := time.Now()
	if err := firstError(d.VIPs().Apply(ctx, rows)); err != nil {
		return out, err
	}
	out.Took = time.Since(begin)
	out.Heap = liveHeap() - heap
	after, err := mapMemory(dir)
	out.Maps = after - maps
	return out, err
}

// liveHeap is bytes of the heap that something refers to.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mapMemory is the memory of the maps that are pinned in a directory, in bytes as the
// kernel counts them.
func mapMemory(dir string) (sum int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		m, err := cilium.LoadPinnedMap(filepath.Join(dir, e.Name()), nil)
		if err != nil {
			continue // a program, or a link
		}
		n, err := memoryOf(m)
		m.Close()
		if err != nil {
			return 0, fmt.Errorf("map %s: %w", e.Name(), err)
		}
		sum += n
	}
	return sum, nil
}

// memoryOf counts the maps in a map, too.
func memoryOf(m *cilium.Map) (int64, error) {
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	n, _ := info.Memlock()
	sum := int64(n)
	if m.Type() != cilium.ArrayOfMaps {
		return sum, nil
	}
	for number := range m.MaxEntries() {
		var inner *cilium.Map
		err := m.Lookup(number, &inner)
		if errors.Is(err, cilium.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return 0, err
		}
		n, err := memoryOf(inner)
		inner.Close()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
