package ebpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// flowCopy copies rows that programs write: those that are missing, or older there. With
// since it takes those that were seen since then: an older one that is missing was copied,
// and programs have deleted it.
type flowCopy func(to, from *ebpf.Map, since *uint32) error

// flowCopies are those of the maps that programs write rows of flows into.
var flowCopies = map[string]flowCopy{
	bpfMapSessionsV1:  copyOf[bpfSessionKey](func(row bpfSession) uint32 { return row.Seen }),
	bpfMapFlowsV4:     copyOf[bpfFlowKey](func(row bpfFlow) uint32 { return row.Seen }),
	bpfMapFragmentsV3: copyOf[bpfFlowKey](func(row bpfFirstFragment) uint32 { return row.Seen }),
	bpfMapAffinityV3:  copyOf[bpfFlowKey](func(row bpfFlow) uint32 { return row.Seen }),
}

func copyOf[K comparable, V any](seen func(V) uint32) flowCopy {
	return func(to, from *ebpf.Map, since *uint32) error {
		var failed error
		_, err := pinned.Walk(from, func(key K, row V) {
			if failed != nil || since != nil && int32(seen(row)-*since) < 0 {
				return
			}
			var there V
			switch err := to.Lookup(key, &there); {
			case errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && int32(seen(row)-seen(there)) > 0:
				failed = to.Put(key, row)
			case err != nil:
				failed = err
			}
		})
		return errors.Join(err, failed)
	}
}

// flowSources are, by the name of a map of flows, other maps that have flows for it: the one
// that it takes the place of, and those that the programs use that run.
type flowSources map[string][]*ebpf.Map

func (s flowSources) close() {
	for _, list := range s {
		for _, m := range list {
			m.Close()
		}
	}
}

// copyTo copies what has been seen since then, or everything.
func (s flowSources) copyTo(t tables, since *uint32) error {
	for name, list := range s {
		for _, from := range list {
			if err := flowCopies[name](t[name], from, since); err != nil {
				return fmt.Errorf("map %s: copy rows: %w", name, err)
			}
		}
	}
	return nil
}

// addRunning adds the maps of programs that run. They are others than the pinned ones while
// maps change their sizes: a process that has ended meanwhile leaves programs by old and by
// new ones.
func (s flowSources) addRunning(dir string, programs []Program, specs map[string]*ebpf.MapSpec, t tables) error {
	var known []ebpf.MapID
	for _, m := range slices.Concat(slices.Collect(maps.Values(t)), slices.Concat(slices.Collect(maps.Values(s))...)) {
		id, err := idOf(m)
		if err != nil {
			return err
		}
		known = append(known, id)
	}
	for _, p := range programs {
		ids, err := pinned.MapsOf(dir, p.String())
		if err != nil {
			return err
		}
		for _, id := range ids {
			if slices.Contains(known, id) {
				continue
			}
			known = append(known, id)
			if err := s.add(id, specs); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a map if it is one of flows.
func (s flowSources) add(id ebpf.MapID, specs map[string]*ebpf.MapSpec) error {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return fmt.Errorf("open map %d of a program: %w", id, err)
	}
	info, err := m.Info()
	if err != nil {
		m.Close()
		return err
	}
	for name := range flowCopies {
		spec := specs[name]
		if spec != nil && (info.Name == name || info.Name == continued[name]) && pinned.SameLayout(m, spec) {
			s[name] = append(s[name], m)
			return nil
		}
	}
	return m.Close()
}

func idOf(m *ebpf.Map) (ebpf.MapID, error) {
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	id, _ := info.ID()
	return id, nil
}
