package ebpf

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

const (
	statsPage = 16384 // STATS_PAGE of bpf/lib/types.h
	statsLen  = 64    // struct balanced
)

// A row of another length does not compile.
var _ [statsLen]byte = [unsafe.Sizeof(bpfBalanced{})]byte{}

// Balanced is what was balanced since the VIP or the backend was added.
type Balanced struct {
	// Bytes are of IP packets, from their header on. Of a packet in fragments only the
	// first one is counted.
	ToBackends, ToClients Traffic
	Flows                 uint64 // that began
	// Unrecorded are packets that began a flow, and were above the rate at which flows are
	// recorded. They went where their hash leads.
	Unrecorded uint64
	Drops      uint64 // there was no backend
}

// Traffic is packets in one direction.
type Traffic struct{ Packets, Bytes uint64 }

// statRows are the rows of vip_stats or backend_stats: one of each processor for each
// number.
type statRows struct {
	*mappedPages
	processors uint32
}

func openStatRows(t tables, pins pagePins, name string) (statRows, error) {
	pages, err := openPages(t, pins, name, "stats_page", statsLen, statsPage)
	return statRows{pages, uint32(ebpf.MustPossibleCPU())}, err
}

// parts are where the rows of a number are: in one page, or in two.
func (s statRows) parts(number uint32, each func(page int, offset int64, rows uint32) error) error {
	for row, left := number*s.processors, s.processors; left > 0; {
		rows := min(left, statsPage-row%statsPage)
		if err := each(int(row/statsPage), int64(row%statsPage)*statsLen, rows); err != nil {
			return err
		}
		row, left = row+rows, left-rows
	}
	return nil
}

// clear begins a number anew.
func (s statRows) clear(number uint32) error {
	return s.parts(number, func(page int, offset int64, rows uint32) error {
		for page >= len(s.pages) {
			if _, err := s.grow(); err != nil {
				return err
			}
		}
		_, err := s.pages[page].WriteAt(make([]byte, rows*statsLen), offset)
		return err
	})
}

// read adds up what the processors have counted.
func (s statRows) read(number uint32) (out Balanced) {
	buffer := make([]byte, s.processors*statsLen)
	_ = s.parts(number, func(page int, offset int64, rows uint32) error {
		b := buffer[:rows*statsLen]
		if page >= len(s.pages) {
			return nil
		}
		if _, err := s.pages[page].ReadAt(b, offset); err != nil {
			return err // beyond the page: clear has made it
		}
		for row := range slices.Chunk(b, statsLen) {
			out.count(row)
		}
		return nil
	})
	return out
}

// Offsets in struct balanced.
const (
	atPackets    = unsafe.Offsetof(bpfBalanced{}.Packets)
	atBytes      = unsafe.Offsetof(bpfBalanced{}.Bytes)
	atFlows      = unsafe.Offsetof(bpfBalanced{}.Flows)
	atUnrecorded = unsafe.Offsetof(bpfBalanced{}.Unrecorded)
	atDrops      = unsafe.Offsetof(bpfBalanced{}.Drops)
)

// count adds a row.
func (b *Balanced) count(row []byte) {
	word := func(at uintptr, way bpfDirection) uint64 { return binary.NativeEndian.Uint64(row[at+8*uintptr(way):]) }
	b.ToBackends.add(word(atPackets, bpfDirectionFROM_FABRIC), word(atBytes, bpfDirectionFROM_FABRIC))
	b.ToClients.add(word(atPackets, bpfDirectionTO_FABRIC), word(atBytes, bpfDirectionTO_FABRIC))
	b.Flows += word(atFlows, 0)
	b.Unrecorded += word(atUnrecorded, 0)
	b.Drops += word(atDrops, 0)
}

func (t *Traffic) add(packets, bytes uint64) {
	t.Packets += packets
	t.Bytes += bytes
}

// BackendKey is a backend of a VRF. VIPs share it.
type BackendKey struct {
	VNI      intent.VNI
	Protocol intent.Protocol
	Addr     netip.AddrPort // port 0: all
}

// Hashes gives the hash of each VIP's table, as TableOf, of VIPs that are not OVN's.
func (v *VIPs) Hashes() map[intent.VIPKey]uint64 {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	out := map[intent.VIPKey]uint64{}
	for k, row := range v.s.lb.vips {
		if bpfVipFlags(row.Flags)&bpfVipFlagsVIP_OVN == 0 {
			out[vipKey(k)] = v.s.lb.tables.hash[row.Table]
		}
	}
	return out
}

// Stats reads what was balanced for each VIP and each backend.
func (v *VIPs) Stats() (map[intent.VIPKey]Balanced, map[BackendKey]Balanced) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	vips, backends := map[intent.VIPKey]Balanced{}, map[BackendKey]Balanced{}
	for k, row := range v.s.lb.vips {
		vips[vipKey(k)] = v.s.lb.vipStats.read(row.Stats)
	}
	for k, row := range v.s.lb.backends.rows {
		backends[BackendKey{k.vni, k.protocol, netip.AddrPortFrom(k.addr, k.port)}] = v.s.lb.backendStats.read(row)
	}
	return vips, backends
}

// statsRest is how long a row that counts rests before it is another one's: flows of a VIP
// or a backend that is gone go on.
const statsRest = intent.FlowIdle

// openStats shares the memory of what is counted.
func (s *store) openStats() (err error) {
	if s.readOnly {
		return nil
	}
	if s.lb.vipStats, err = openStatRows(s.t, s.pagePins(), bpfMapVipStatsV1); err != nil {
		return err
	}
	s.lb.backendStats, err = openStatRows(s.t, s.pagePins(), bpfMapBackendStatsV1)
	return err
}

// acquireStats gives a VIP a row of vip_stats. With an error it may have one, too.
func (s *store) acquireStats(k bpfVipKey) (uint32, error) {
	row, fresh, err := s.lb.stats.acquire(k)
	if err == nil && fresh {
		err = mapError(bpfMapVipStatsV1, s.lb.vipStats.clear(row))
		// A limit that became smaller leaves VIPs beyond it, of which all flows are recorded.
		if err == nil && row < s.t[bpfMapRatesV1].MaxEntries() {
			err = s.setRow(bpfMapRatesV1, row, bpfRate{})
		}
	}
	return row, err
}
