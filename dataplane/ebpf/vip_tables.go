package ebpf

import (
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
)

// tableRefs are the tables that are there, by where their first slot is.
type tableRefs struct {
	at   map[tableKey]uint32
	keys map[uint32]tableKey
	refs map[uint32]int
	hash map[uint32]uint64 // see TableOf
}

func newTableRefs() tableRefs {
	return tableRefs{map[tableKey]uint32{}, map[uint32]tableKey{}, map[uint32]int{}, map[uint32]uint64{}}
}

// add takes note of a table with its words.
func (t *tableRefs) add(table uint32, k tableKey, words []uint64) {
	t.at[k], t.keys[table], t.hash[table] = table, k, tableHash(k, words)
}

// span is where a table is.
func (k tableKey) span(table uint32) span {
	return span{table, uint32(slotsOf(k.slots) + k.backends.Len())}
}

// acquireTable finds or makes a table. One is never changed: other backends are another
// table, and the VIP changes to it in one write.
func (s *store) acquireTable(k tableKey) (uint32, error) {
	if table, ok := s.lb.tables.at[k]; ok {
		s.lb.tables.refs[table]++
		return table, nil
	}
	words, taken, err := s.tableWords(k)
	var table uint32
	if err == nil {
		table, err = s.lb.pages.put(words)
	}
	if err != nil {
		for _, b := range taken {
			err = joinRelease(err, s.releaseBackend(b))
		}
		return 0, fmt.Errorf("map %s: %w", bpfMapMaglevV2, err)
	}
	s.lb.tables.add(table, k, words)
	s.lb.tables.refs[table] = 1
	return table, nil
}

// tableWords is what is in a table. It takes a reference to each backend.
func (s *store) tableWords(k tableKey) (words []uint64, taken []uint32, err error) {
	words, err = slotWords(k)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range k.backends.All() {
		row, err := s.acquireBackend(backendKey{k.vni, k.protocol, b.Addr, b.Port})
		if err != nil {
			return nil, taken, err
		}
		taken = append(taken, row)
		words = append(words, uint64(b.Weight)<<32|uint64(row))
	}
	return words, taken, nil
}

// slotsOf is how many words the slots of a table take.
func slotsOf(slots uint32) int { return (int(slots) + 3) / 4 }

// slotWords builds a table's slots. The numbers in them are places in the set, which has
// the order of addresses, where a table of package maglev has that of keys.
func slotWords(k tableKey) ([]uint64, error) {
	list, place := maglevBackends(k.protocol, k.backends)
	t, err := maglev.Build(list, int(k.slots))
	words := make([]uint64, slotsOf(k.slots))
	if errors.Is(err, maglev.ErrNoBackend) {
		for i := range words {
			words[i] = ^uint64(0)
		}
		return words, nil
	}
	if err != nil {
		return nil, err
	}
	numbers := make([]uint64, len(t.Keys))
	for i, key := range t.Keys {
		numbers[i] = uint64(place[key])
	}
	for i, index := range t.Slots {
		words[i/4] |= numbers[index] << (i % 4 * 16)
	}
	return words, nil
}

// tableHash is TableOf's of words that slotWords has made.
func tableHash(k tableKey, words []uint64) uint64 {
	all := k.backends.All()
	t := maglev.Table{Keys: make([]string, len(all)), Slots: make([]uint16, k.slots)}
	for i, b := range all {
		t.Keys[i] = b.TableKey(k.protocol)
	}
	for i := range t.Slots {
		t.Slots[i] = uint16(words[i/4] >> (i % 4 * 16))
		if int(t.Slots[i]) >= len(all) {
			return 0
		}
	}
	return t.Hash()
}

// maglevBackends are backends as package maglev takes them, and their places in the set by key.
func maglevBackends(p intent.Protocol, set intent.BackendSet) (list []maglev.Backend, place map[string]uint16) {
	backends := set.All()
	place = make(map[string]uint16, len(backends))
	list = make([]maglev.Backend, len(backends))
	for i, b := range backends {
		list[i] = maglev.Backend{Key: b.TableKey(p), Weight: b.Weight}
		place[list[i].Key] = uint16(i)
	}
	return list, place
}

// releaseTable gives back a reference to a table; 0 is none.
func (s *store) releaseTable(table uint32) error {
	if table == 0 {
		return nil
	}
	t := &s.lb.tables
	if t.refs[table]--; t.refs[table] > 0 {
		return nil
	}
	k := t.keys[table]
	delete(t.refs, table)
	delete(t.keys, table)
	delete(t.at, k)
	delete(t.hash, table)
	s.lb.pages.release(k.span(table))
	var err error
	for _, b := range k.backends.All() {
		err = errors.Join(err, s.releaseBackend(s.lb.backends.rows[backendKey{k.vni, k.protocol, b.Addr, b.Port}]))
	}
	return err
}

func (s *store) acquireBackend(k backendKey) (uint32, error) {
	row, fresh, err := s.lb.backends.acquire(k)
	if err != nil {
		return 0, fmt.Errorf("backends: %w", err)
	}
	if !fresh {
		return row, nil
	}
	v := bpfBackend{Addr: k.addr.As16(), Scope: uint32(k.vni), Port: bePort(k.port), Proto: uint8(k.protocol)}
	err = mapError(bpfMapBackendStatsV1, s.lb.backendStats.clear(row))
	if err == nil {
		err = s.setRow(bpfMapBackendsV1, row, &v)
	}
	if err == nil {
		err = s.lb.front.add(v)
	}
	if err != nil {
		s.lb.backends.release(row)
		return 0, err
	}
	return row, nil
}

func (s *store) releaseBackend(row uint32) error {
	if !s.lb.backends.release(row) {
		return nil
	}
	return s.setRow(bpfMapBackendsV1, row, bpfBackend{})
}
