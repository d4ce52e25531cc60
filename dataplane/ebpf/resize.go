package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// together are maps whose rows have the same numbers.
var together = map[string]string{bpfMapAskedV1: bpfMapEntriesV1, bpfMapBucketsV1: bpfMapCountersV1}

// keepLarger gives a pinned map its size back where the configured one is smaller
// than what is in use: a limit that shrinks must not keep the node from starting.
// Rows of arrays have numbers by history, so that a few of them may need a large
// array; how many are used at once is limited by slots. It tells which maps. One of flows that
// goes on from the version before keeps its size for this start, too: while programs are
// replaced, one by one, those of both versions have the same map.
func keepLarger(dir string, specs map[string]*ebpf.MapSpec) (kept []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if _, follows := together[name]; follows {
			continue
		}
		old, err := pinnedSize(dir, name, specs[name])
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		if old != 0 {
			specs[name].MaxEntries = old
			if specs[name].Type != ebpf.LRUHash || !fromBefore(dir, name) {
				kept = append(kept, name)
			}
		}
	}
	for name, leads := range together {
		if slices.Contains(kept, leads) {
			specs[name].MaxEntries = specs[leads].MaxEntries
		}
	}
	return kept, nil
}

// pinnedSize is the size that a pinned map is to keep: its rows do not fit into the
// spec's, or it goes on from the version before. Else 0.
func pinnedSize(dir, name string, spec *ebpf.MapSpec) (uint32, error) {
	m, err := ebpf.LoadPinnedMap(pinOf(dir, name), &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer m.Close()
	if !pinned.SameLayout(m, spec) {
		return 0, nil
	}
	if m.Type() == ebpf.LRUHash && fromBefore(dir, name) {
		return m.MaxEntries(), nil
	}
	if m.MaxEntries() <= spec.MaxEntries || name == bpfMapRouteFrontV1 {
		return 0, nil
	}
	rows := uint32(0)
	var key, value []byte
	it := m.Iterate()
	switch m.Type() {
	case ebpf.Array:
		for it.Next(&key, &value) {
			if slices.ContainsFunc(value, func(b byte) bool { return b != 0 }) {
				rows = nativeUint32(key) + 1
			}
		}
	case ebpf.Hash, ebpf.LPMTrie:
		for it.Next(&key, &value) {
			rows++
		}
	case ebpf.LRUHash:
		for it.Next(&key, &value) {
			rows += 2 // it forgets rows before all of its room is used
		}
		if errors.Is(it.Err(), ebpf.ErrIterationAborted) { // programs have changed it too fast to be counted
			return m.MaxEntries(), nil
		}
	case ebpf.PerCPUArray:
		if name != bpfMapCountersV1 {
			return 0, nil
		}
		// Two rows for each VRF, by its index: without them what it forwards is not
		// counted, and the counters of none could be read.
		indices, err := PinnedVRFs(dir)
		if err != nil {
			return 0, err
		}
		for _, index := range indices {
			rows = max(rows, 2*(uint32(index)+1))
		}
	default:
		return 0, nil
	}
	if rows <= spec.MaxEntries {
		return 0, it.Err()
	}
	return m.MaxEntries(), it.Err()
}
