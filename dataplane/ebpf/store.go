package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ErrFull is wrapped by the error of a row that found its map full.
var ErrFull = errors.New("the map is full; raise its limit in the configuration")

// store is what the drivers share: the maps, and who refers to which row of an
// array. All of it can be found again from the maps.
type store struct {
	mu      sync.Mutex
	dir     func() string // of the pins
	t       tables
	plane   Plane
	limits  Limits
	bridges Bridges
	devices Devices // nil: none
	// networks is that of Config, nil: none.
	networks func(intent.BridgeKey) uint16
	// readOnly: the maps may be missing, and nothing is written: see Inspect.
	readOnly bool

	entries  *slots[entryKey]
	nexthops *slots[nexthopKey]
	groups   *slots[groupKey]
	// live are the gateways that have a row in the gateways map.
	live map[intent.GatewayKey]liveGateway
	// leaving is what such a gateway was before, while that has not ended.
	leaving map[intent.GatewayKey]liveGateway
	// defaults are the routes of the default VRF by the entries that they refer to, and
	// whether each is of an address with VIPs.
	defaults map[uint32]map[intent.RouteKey]bool
	// rows counts the rows of hash and trie maps.
	rows map[string]int
	// What the tries hold: a trie's own lookup cannot tell a row from a shorter
	// prefix that covers it.
	served    map[bpfServedKey]bpfServed
	known     map[intent.ServedKey]uint32 // the device of each row
	prefixes4 map[bpfPrefix4Key]bpfRoute
	prefixes6 map[bpfPrefix6Key]bpfRoute
	front     *routeFront
	vrfs      *vrfFront
	cache     *prefixCache
	lb        balancing
	// follows: maps of an older layout have VIPs, whose flows are in no map of this build.
	follows atomic.Bool
}

// entryKey names a row of entries: a gateway that moves to another VRF gets
// another row, so that no running program can mix the two.
type entryKey struct {
	gateway intent.GatewayKey
	vni     intent.VNI
}

type nexthopKey struct {
	owner intent.VNI
	hop   intent.NextHop
}

type groupKey struct {
	owner intent.VNI
	hops  intent.NextHopSet
}

type liveGateway struct {
	row     uint32
	vni     intent.VNI
	ifindex uint32
}

func newStore(t tables, limits Limits, cfg Config) *store {
	s := &store{dir: func() string { return cfg.Dir }, t: t, plane: cfg.Plane, limits: limits, bridges: cfg.Bridges, devices: cfg.Devices, networks: cfg.Networks, rows: map[string]int{}}
	s.reset()
	return s
}

// newStore has its pages pinned in the directory that is held.
func (d *Dataplane) newStore(limits Limits, cfg Config) *store {
	s := newStore(d.tables, limits, cfg)
	s.dir = d.pins
	return s
}

// pagePins are where the maps in arrays of maps are pinned.
func (s *store) pagePins() pagePins { return pagePins{s.dir, s.readOnly} }

// pages are those of all arrays of maps.
func (s *store) pages() (all []*mappedPages) {
	if s.lb.pages != nil {
		all = append(all, s.lb.pages.mappedPages)
	}
	for _, rows := range []statRows{s.lb.vipStats, s.lb.backendStats} {
		if rows.mappedPages != nil {
			all = append(all, rows.mappedPages)
		}
	}
	return all
}

func (s *store) reset() {
	s.entries = newSlots[entryKey](s.limits.Gateways + 1)
	s.nexthops = newSlots[nexthopKey](s.limits.NextHops + 1)
	s.groups = newSlots[groupKey](s.limits.Groups + 1)
	s.live, s.leaving = map[intent.GatewayKey]liveGateway{}, map[intent.GatewayKey]liveGateway{}
	s.defaults = map[uint32]map[intent.RouteKey]bool{}
	s.served = map[bpfServedKey]bpfServed{}
	s.known = map[intent.ServedKey]uint32{}
	s.prefixes4 = map[bpfPrefix4Key]bpfRoute{}
	s.prefixes6 = map[bpfPrefix6Key]bpfRoute{}
	s.lb = newBalancing(s.limits)
}

// put writes one row, counts it, and names a full map. What a pointer leads to is written without a copy.
func (s *store) put(name string, key, value any) error {
	err := s.t[name].Update(key, value, ebpf.UpdateNoExist)
	if err == nil {
		s.rows[name]++
		return nil
	}
	if errors.Is(err, ebpf.ErrKeyExist) {
		err = s.t[name].Put(key, value)
	}
	return mapError(name, err)
}

func mapError(name string, err error) error {
	if err == nil {
		return nil
	}
	// A full hash map says E2BIG, a full trie ENOSPC.
	if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("map %s: %w", name, ErrFull)
	}
	return fmt.Errorf("map %s: %w", name, err)
}

// drop deletes one row; a row that is not there is no error.
func (s *store) drop(name string, key any) error {
	if s.readOnly {
		return nil
	}
	err := s.t[name].Delete(key)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	if err == nil {
		s.rows[name]--
	}
	return mapError(name, err)
}

// setRow writes a row of an array.
func (s *store) setRow(name string, row uint32, value any) error {
	return mapError(name, s.t[name].Put(row, value))
}

// repair finds the references again at start, and takes away what a crash
// between two writes left without a reference.
func (s *store) repair() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.adopt(); err != nil {
		return fmt.Errorf("read the pinned maps: %w", err)
	}
	if s.plane == Clients {
		return s.settleVIPs()
	}
	// An older build had another front.
	for k, l := range s.live {
		if err := s.frontGateway(gatewayKernelKey(k, l.ifindex), bpfGateway{Entry: l.row, Vni: uint32(l.vni)}); err != nil {
			return err
		}
	}
	if err := s.repairSpeakers(); err != nil {
		return err
	}
	for _, row := range s.entries.settle() {
		if err := s.clearEntry(row); err != nil {
			return err
		}
	}
	// Groups first: their members are references to next hops.
	for _, row := range s.groups.settle() {
		if err := s.clearGroup(row); err != nil {
			return err
		}
	}
	if err := s.settleVIPs(); err != nil {
		return err
	}
	for _, row := range s.nexthops.settle() {
		if err := s.setRow(bpfMapNexthopsV1, row, bpfNexthop{}); err != nil {
			return err
		}
	}
	return nil
}

// adopt reads all references from the maps.
func (s *store) adopt() error {
	s.reset()
	if s.plane == Clients {
		return s.adoptVIPs()
	}
	if !s.readOnly {
		if err := s.openMemory(); err != nil {
			return err
		}
	}
	if err := s.adoptGateways(); err != nil {
		return err
	}
	if err := s.adoptServed(); err != nil {
		return err
	}
	if err := s.adoptKnown(); err != nil {
		return err
	}
	if err := s.adoptNextHops(); err != nil {
		return err
	}
	// Before the routes, with which the front of VRFs is written: it says which VRFs have VIPs.
	if err := s.adoptVIPs(); err != nil {
		return err
	}
	return s.adoptRoutes()
}

// openMemory shares the memory of the maps that are written without a call.
func (s *store) openMemory() (err error) {
	if s.front, err = openRouteFront(s.t[bpfMapRouteFrontV1]); err != nil {
		return mapError(bpfMapRouteFrontV1, err)
	}
	if s.vrfs, err = openVRFFront(s.t[bpfMapVrfFrontV2]); err != nil {
		return mapError(bpfMapVrfFrontV2, err)
	}
	if s.cache, err = openPrefixCache(s.t[bpfMapPrefixGenV1]); err != nil {
		return mapError(bpfMapPrefixGenV1, err)
	}
	// A crash may have come between a change and the new generation.
	s.cache.forget()
	return nil
}

func nativeUint32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// from16 reads an address of 16 bytes, IPv4 as IPv4-mapped.
func from16(b [16]byte) netip.Addr { return netip.AddrFrom16(b).Unmap() }

// results keeps one error a row, nil while there is none.
type results []error

func (r *results) set(n, i int, err error) {
	if err == nil {
		return
	}
	if *r == nil {
		*r = make(results, n)
	}
	(*r)[i] = err
}

func (r results) at(i int) error {
	if r == nil {
		return nil
	}
	return r[i]
}

// putTrie writes one row of a trie and of its copy.
func putTrie[K comparable, V any](s *store, name string, copied map[K]V, key K, value V) error {
	if err := s.t[name].Put(key, value); err != nil {
		return mapError(name, err)
	}
	copied[key] = value
	s.rows[name] = len(copied)
	return nil
}

// dropTrie deletes one row of a trie and of its copy.
func dropTrie[K comparable, V any](s *store, name string, copied map[K]V, key K) error {
	if err := s.t[name].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return mapError(name, err)
	}
	delete(copied, key)
	s.rows[name] = len(copied)
	return nil
}
