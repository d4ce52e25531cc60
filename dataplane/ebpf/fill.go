package ebpf

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Fill is how full a map is.
type Fill struct {
	// Table is the table of pkg/intent whose rows the map holds.
	Table     string
	Map       string
	Used, Max int
}

// fillTables are the maps of the plane that can run full, and the table that fills each.
func (p Plane) fillTables() map[string]string {
	if p == Clients {
		return clientFillTables
	}
	return nodeFillTables
}

var clientFillTables = map[string]string{
	bpfMapClientsV2: "clients", bpfMapNeighborsV1: "client-neighbors",
	bpfMapVipsV2: "client-vips", bpfMapBackendsV1: "client-vips", bpfMapAnswersV2: "client-vips",
	bpfMapSessionsV1: "client-vips", bpfMapFlowsV4: "client-vips",
}

var nodeFillTables = map[string]string{
	bpfMapVrfsV2: "vrfs", bpfMapGatewaysV1: "gateways", bpfMapEntriesV1: "gateways",
	bpfMapServedV1: "served", bpfMapKnownV1: "served", bpfMapVtepsV1: "vteps",
	bpfMapHostsV1: "routes", bpfMapPrefixes4V1: "routes", bpfMapPrefixes6V1: "routes",
	bpfMapNexthopsV1: "routes", bpfMapGroupsV1: "routes",
	bpfMapBackendRoutesV1: "backend-routes", bpfMapVipsV2: "vips", bpfMapBackendsV1: "vips", bpfMapAnswersV2: "vips",
	bpfMapSessionsV1: "vips", bpfMapFlowsV4: "vips",
}

// MapOf is the map of a route, as Fill.Map names it.
func MapOf(k intent.RouteKey) string {
	name := bpfMapPrefixes6V1
	switch {
	case k.IsHost():
		name = bpfMapHostsV1
	case k.Prefix.Addr().Is4():
		name = bpfMapPrefixes4V1
	}
	base, _, _ := pinned.SplitVersion(name)
	return base
}

// Fills counts the rows of the maps that can run full, ordered by name.
func (d *Dataplane) Fills() []Fill {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	arrays := map[string]int{bpfMapEntriesV1: s.entries.used(), bpfMapNexthopsV1: s.nexthops.used(), bpfMapGroupsV1: s.groups.used(),
		bpfMapBackendsV1: s.lb.backends.used()}
	var out []Fill
	tables := s.plane.fillTables()
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		used, most := s.rows[name], int(s.t[name].MaxEntries())
		if rows, isArray := arrays[name]; isArray {
			used = rows
			most-- // row 0 stands for nothing
		}
		base, _, _ := pinned.SplitVersion(name)
		out = append(out, Fill{Table: tables[name], Map: base, Used: used, Max: most})
	}
	return out
}
