package ebpf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// VIPs drives the maps vips, maglev, backends, backend_front and answers, and makes the
// rows of vip_stats and backend_stats.
type VIPs struct{ s *store }

// VIPs is the driver of the table VIPs.
func (d *Dataplane) VIPs() *VIPs { return &VIPs{d.store} }

// VIPs lists the table VIPs.
func (i *Inspection) VIPs() *VIPs { return &VIPs{i.store} }

// balancing is what the store has of load balancing.
type balancing struct {
	// vips are the rows of the map.
	vips     map[bpfVipKey]bpfVip
	tables   tableRefs
	pages    *tablePages
	backends *slots[backendKey]
	front    *backendFront
	// stats are the VIPs' rows of vip_stats.
	stats                  *slots[bpfVipKey]
	vipStats, backendStats statRows
	// users are the VIPs of each backend; crowded are the rows of backends whose answers
	// were last written as those of too many VIPs to name.
	users   multimap.Map[backendKey, bpfVipKey]
	crowded map[backendKey]uint32
	// born are the addresses with VIPs.
	born map[intent.RouteKey]birth
	now  func() time.Time
	// ended are the VIPs of which flows are to end, until they have.
	ended map[bpfVipKey]bool
	// first: no VIPs were there at the start, and those that there are come now, as far as
	// is known since began.
	first bool
	began time.Time
	// before is who has balanced for VMs whose rows are not written yet, if it is known.
	before map[intent.TapClientKey]intent.Before
}

// followOlder has what comes be as it was in maps of an older layout: its flows go by the tables,
// as those that come from another node.
func (s *store) followOlder() {
	s.lb.first = false
	s.follows.Store(true)
}

func newBalancing(l Limits) balancing {
	b := balancing{vips: map[bpfVipKey]bpfVip{}, tables: newTableRefs(), backends: newSlots[backendKey](l.Backends + 1), stats: newSlots[bpfVipKey](2*l.VIPs + 1),
		users: multimap.Map[backendKey, bpfVipKey]{}, crowded: map[backendKey]uint32{}, ended: map[bpfVipKey]bool{}, born: map[intent.RouteKey]birth{}, now: time.Now, before: map[intent.TapClientKey]intent.Before{}}
	b.backends.after, b.stats.after = statsRest, statsRest
	return b
}

// tableKey is what makes a table: VIPs of which all of it is equal share one.
type tableKey struct {
	vni      intent.VNI
	protocol intent.Protocol
	slots    uint32
	backends intent.BackendSet
}

type backendKey struct {
	vni      intent.VNI
	protocol intent.Protocol
	addr     netip.Addr
	port     uint16
}

// bePort is a port as the programs' __be16.
func bePort(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}

func vipKernelKey(k intent.VIPKey) bpfVipKey {
	return bpfVipKey{Scope: uint32(k.VNI), Port: bePort(k.Port), Proto: uint8(k.Protocol), Addr: k.Addr.As16()}
}

func vipKey(k bpfVipKey) intent.VIPKey {
	return intent.VIPKey{VNI: intent.VNI(k.Scope), Protocol: intent.Protocol(k.Proto), Addr: from16(k.Addr), Port: bePort(k.Port)}
}

// List reads the map. A VIP whose table is none of its own is listed with the zero value.
func (v *VIPs) List(context.Context) (map[intent.VIPKey]intent.VIP, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	out := map[intent.VIPKey]intent.VIP{}
	n, err := pinned.Walk(v.s.t[bpfMapVipsV2], func(k bpfVipKey, r bpfVip) { out[vipKey(k)] = v.s.lb.value(k, r) })
	v.s.rows[bpfMapVipsV2] = n
	return out, mapError(bpfMapVipsV2, err)
}

func (b *balancing) value(k bpfVipKey, r bpfVip) intent.VIP {
	flags := bpfVipFlags(r.Flags)
	if flags&bpfVipFlagsVIP_OVN != 0 {
		// With a table it is for what goes on, when the VIP goes: see applyVIP.
		return intent.VIP{Key: vipKey(k), OVN: true, Flush: flags&bpfVipFlagsVIP_FLUSH != 0 && r.Table == 0}
	}
	t, ok := b.tables.keys[r.Table]
	if !ok || t.vni != intent.VNI(k.Scope) || uint8(t.protocol) != k.Proto || t.slots != uint32(r.Slots) {
		return intent.VIP{}
	}
	return intent.VIP{
		Key: vipKey(k), Backends: t.backends, Slots: uint32(r.Slots), Affinity: r.Affinity,
		ByAddress: flags&bpfVipFlagsVIP_BY_ADDRESS != 0, Flush: flags&bpfVipFlagsVIP_FLUSH != 0,
	}
}

func vipFlags(v intent.VIP) (flags uint16) {
	for _, f := range []struct {
		set  bool
		flag bpfVipFlags
	}{{v.ByAddress, bpfVipFlagsVIP_BY_ADDRESS}, {v.Flush, bpfVipFlagsVIP_FLUSH}, {v.OVN, bpfVipFlagsVIP_OVN}} {
		if f.set {
			flags |= uint16(f.flag)
		}
	}
	return flags
}

// Apply writes rows, each after its table.
func (v *VIPs) Apply(_ context.Context, rows []reconcile.Row[intent.VIPKey, intent.VIP]) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.lb.begin()
	var out results
	for i, r := range rows {
		if err := v.s.applyVIP(r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("VIP %s: %w", r.Key, err))
		}
	}
	ended := v.s.endFlows()
	for i, r := range rows {
		if v.s.lb.ended[vipKernelKey(r.Key)] {
			out.set(len(rows), i, ended)
		}
	}
	return out
}

func checkVIP(v intent.VIP) error {
	switch {
	case !v.Key.VNI.ValidScope():
		return fmt.Errorf("%d is neither a VNI nor a switch", uint32(v.Key.VNI))
	case !v.Key.Addr.IsValid() || v.Key.Addr.Is4In6():
		return fmt.Errorf("%s is no address", v.Key.Addr)
	case v.Key.Protocol != intent.TCP && v.Key.Protocol != intent.UDP && v.Key.Protocol != intent.SCTP:
		return fmt.Errorf("%s is none of tcp, udp and sctp", v.Key.Protocol)
	}
	for _, b := range v.Backends.All() {
		if b.Addr.Is4() != v.Key.Addr.Is4() || (b.Port == 0) != (v.Key.Port == 0) {
			return fmt.Errorf("backend %s is of another family, or only one of the two has a port", b)
		}
	}
	return nil
}

func (s *store) applyVIP(v intent.VIP) error {
	if err := checkVIP(v); err != nil {
		return err
	}
	k := vipKernelKey(v.Key)
	old, had := s.lb.vips[k]
	row := bpfVip{Slots: uint16(v.Slots), Members: uint16(v.Backends.Len()), Affinity: v.Affinity, Flags: vipFlags(v)}
	var err error
	if v.OVN {
		row.Slots, row.Members, row.Affinity = 0, 0, 0
	}
	switch {
	case v.OVN && v.Flush: // no flow from before goes on
	case v.OVN:
		// The table goes on to say where flows from before went, by the hash that it had.
		row.Table, row.Slots, row.Members, row.Affinity = old.Table, old.Slots, old.Members, old.Affinity
		row.Flags |= old.Flags & uint16(bpfVipFlagsVIP_BY_ADDRESS)
		if row.Table != 0 {
			row.Flags |= old.Flags & uint16(bpfVipFlagsVIP_FLUSH)
			s.lb.tables.refs[row.Table]++
		}
	default:
		if row.Table, err = s.acquireTable(tableKey{v.Key.VNI, v.Key.Protocol, v.Slots, v.Backends}); err != nil {
			return err
		}
	}
	row.Until, err = s.vipUntil(v.Key.VNI, old, had, row)
	if row.Stats = old.Stats; err == nil && !had {
		row.Stats, err = s.acquireStats(k)
	}
	if err == nil {
		err = s.put(bpfMapVipsV2, &k, &row)
	}
	if err != nil {
		if !had && row.Stats != 0 {
			s.lb.stats.release(row.Stats)
		}
		return joinRelease(err, s.releaseTable(row.Table))
	}
	s.lb.vips[k] = row
	if had && v.Flush && s.lb.leaves(old, row) {
		s.lb.ended[k] = true
	}
	s.lb.use(k, old, row)
	if !had {
		s.vrfs.countVIP(v.Key.VNI, +1)
		s.lb.bear(v.Key, s.lb.now())
	}
	err = s.writeAnswers(old.Table, row.Table)
	if had {
		err = errors.Join(err, s.releaseTable(old.Table))
	}
	return err
}

// use follows a VIP that has another table now; the zero value is none.
func (b *balancing) use(k bpfVipKey, old, now bpfVip) {
	for _, member := range b.members(old.Table) {
		b.users.Delete(member, k)
	}
	for _, member := range b.members(now.Table) {
		b.users.Add(member, k)
	}
}

// members are the backends of the table in a row.
func (b *balancing) members(table uint32) []backendKey {
	k, ok := b.tables.keys[table]
	if !ok {
		return nil
	}
	var out []backendKey
	for _, m := range k.backends.All() {
		out = append(out, backendKey{k.vni, k.protocol, m.Addr, m.Port})
	}
	return out
}

// writeAnswers brings the rows of the backends of tables up to date.
func (s *store) writeAnswers(tables ...uint32) error {
	done := map[backendKey]bool{}
	var err error
	for _, table := range tables {
		for _, member := range s.lb.members(table) {
			if !done[member] {
				done[member] = true
				err = errors.Join(err, s.writeAnswer(member))
			}
		}
	}
	return err
}

// writeAnswer writes what VIPs a backend has. The order of several is that of their keys.
// Of too many their number alone counts, and thousands may share a backend: nothing is
// written then as they become more.
func (s *store) writeAnswer(member backendKey) error {
	k := bpfVipKey{Scope: uint32(member.vni), Port: bePort(member.port), Proto: uint8(member.protocol), Addr: member.addr.As16()}
	users := s.lb.users.Count(member)
	row := bpfAnswers{Backend: s.lb.backends.rows[member], Count: uint32(users)}
	if users > len(row.Vips) {
		row.Count = uint32(len(row.Vips)) + 1
		if s.lb.crowded[member] == row.Backend {
			return nil
		}
		err := s.put(bpfMapAnswersV2, &k, &row)
		if err == nil {
			s.lb.crowded[member] = row.Backend
		}
		return err
	}
	delete(s.lb.crowded, member)
	if users == 0 {
		return s.drop(bpfMapAnswersV2, k)
	}
	list := slices.SortedFunc(s.lb.users.All(member), func(a, b bpfVipKey) int { return vipKey(a).Compare(vipKey(b)) })
	for i, u := range list {
		row.Vips[i] = bpfAnswerVip{Addr: u.Addr, Vip: s.lb.vips[u], Port: u.Port}
	}
	return s.put(bpfMapAnswersV2, &k, &row)
}

// Delete removes rows, each after the sessions of its VIP: nothing tells of these after that, and
// a VIP that is added again would find them.
func (v *VIPs) Delete(_ context.Context, keys []intent.VIPKey) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	for i, k := range keys {
		out.set(len(keys), i, v.s.emptyVIP(k))
	}
	ended := v.s.endFlows()
	for i, k := range keys {
		err := out.at(i)
		switch {
		case err != nil: // it keeps its flows, and so its row
		case v.s.lb.ended[vipKernelKey(k)]:
			err = ended
		default:
			err = v.s.deleteVIP(k)
		}
		if err != nil {
			out.set(len(keys), i, fmt.Errorf("VIP %s: %w", k, err))
		}
	}
	return out
}

// emptyVIP has no more sessions of a VIP begin, and those that there are be to end. The row says
// so also to the process after one that was killed meanwhile: see endLeft.
func (s *store) emptyVIP(key intent.VIPKey) error {
	k := vipKernelKey(key)
	old, had := s.lb.vips[k]
	if !had {
		return nil
	}
	row := bpfVip{Stats: old.Stats, Flags: uint16(bpfVipFlagsVIP_FLUSH)}
	if err := s.put(bpfMapVipsV2, &k, &row); err != nil {
		return err
	}
	s.lb.vips[k], s.lb.ended[k] = row, true
	s.lb.use(k, old, row)
	if err := s.writeAnswers(old.Table); err != nil { // the next try writes them: it has to know the backends
		s.lb.vips[k] = old
		s.lb.use(k, row, old)
		return err
	}
	return s.releaseTable(old.Table)
}

func (s *store) deleteVIP(key intent.VIPKey) error {
	k := vipKernelKey(key)
	old, had := s.lb.vips[k]
	if !had {
		return nil
	}
	if err := s.drop(bpfMapVipsV2, k); err != nil {
		return err
	}
	delete(s.lb.vips, k)
	s.lb.stats.release(old.Stats)
	s.lb.unborn(key)
	s.lb.use(k, old, bpfVip{})
	s.vrfs.countVIP(key.VNI, -1)
	return errors.Join(s.writeAnswers(old.Table), s.releaseTable(old.Table))
}
