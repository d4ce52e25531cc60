package kernel

import (
	"maps"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ofKernel tells whether a table is one that the kernel has always (default, main,
// local). No VRF has it, and nothing of these drivers is in it.
func ofKernel(table uint32) bool {
	return table >= unix.RT_TABLE_DEFAULT && table <= unix.RT_TABLE_LOCAL
}

// stranded are the tables that have routes of ours, and no VRF: somebody else has
// removed the device, and the kernel keeps what leads nowhere. Each goes by the VNI of
// its number. For a table of an index (see tables) that is the VNI of no VRF.
func stranded(s *snapshot, f *fib) []uint32 {
	used := map[uint32]bool{}
	for _, l := range s.byIndex {
		if vrf, ok := l.(*netlink.Vrf); ok {
			used[vrf.Table] = true
		}
	}
	var out []uint32
	for _, table := range slices.Sorted(maps.Keys(f.tables)) {
		_, made := s.vrf(intent.VNI(table))
		if table == 0 || used[table] || made || ofKernel(table) {
			continue
		}
		if slices.ContainsFunc(f.tables[table], func(r fibRoute) bool { return r.protocol == RouteProtocol }) {
			out = append(out, table)
		}
	}
	return out
}

// tableOf is the table of a VRF, or the one that is left of it.
func (s *snapshot) tableOf(vni intent.VNI) (table uint32, ok bool) {
	if vrf, made := s.vrf(vni); made {
		return vrf.Table, true
	}
	return uint32(vni), vni != 0 && !ofKernel(uint32(vni))
}

// flush removes the routes of ours from a table.
func (s *snapshot) flush(table uint32) error {
	routes, err := tableRoutes(table)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.protocol != RouteProtocol {
			continue
		}
		if err := removeRoute(s.h, r); err != nil {
			return err
		}
	}
	return nil
}
