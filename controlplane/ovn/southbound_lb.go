package ovn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// DatapathGroup is a row of SB Logical_DP_Group, with BalanceBySouthbound.
type DatapathGroup struct {
	UUID      UUID
	Datapaths []UUID
}

// SBGlobal is the row of SB_Global.
type SBGlobal struct {
	UUID UUID
	// TableSize is options:sluice-m, which ovn-northd copies from NB_Global; with
	// BalanceBySouthbound.
	TableSize string
	// Weights are as those of NBGlobal.
	Weights map[UUID]string
}

// Key is the row's _uuid.
func (g DatapathGroup) Key() UUID { return g.UUID }

// Key is the row's _uuid.
func (g SBGlobal) Key() UUID { return g.UUID }

func (DatapathGroup) table() Table { return TableDatapathGroup }
func (SBGlobal) table() Table      { return TableSBGlobal }

// southLB is what the Southbound database tells of load balancers. It is read where there is
// no Northbound session, and for switches only: a load balancer that hangs on a router may
// have no row there, and what OVN translates on a router never has one.
type southLB struct {
	// follows is what BalanceBySouthbound was told.
	follows bool
	groups  map[UUID]DatapathGroup
	// groupsWith are the groups of a datapath, lbAt the load balancers of a group, or of a
	// datapath that they name themselves.
	groupsWith, lbAt index[UUID]
	globals          map[UUID]SBGlobal
}

func newSouthLB() southLB {
	return southLB{groups: map[UUID]DatapathGroup{}, groupsWith: index[UUID]{}, lbAt: index[UUID]{}, globals: map[UUID]SBGlobal{}}
}

// BalanceBySouthbound says, before any row is there, whether the load balancers of switches
// are those of Southbound, since there is no Northbound session.
func (r *Rows) BalanceBySouthbound(yes bool) { r.south.follows = yes }

func convertSouthLB(row ovsdb.Row) Row {
	switch r := row.(type) {
	case *sb.LoadBalancer:
		b := LoadBalancer{UUID: UUID(r.UUID), Northbound: UUID(r.ExternalIDs[northboundID]), Name: r.Name, Protocol: value(r.Protocol), VIPs: r.Vips, Options: r.Options,
			At: uuids(r.Datapaths), Probed: backendAddresses(r.Vips)}
		for _, group := range []*string{r.DatapathGroup, r.LsDatapathGroup} {
			if group != nil {
				b.At = append(b.At, UUID(*group))
			}
		}
		return b
	case *sb.LogicalDPGroup:
		return DatapathGroup{UUID: UUID(r.UUID), Datapaths: uuids(r.Datapaths)}
	case *sb.SBGlobal:
		return SBGlobal{UUID: UUID(r.UUID), TableSize: r.Options[optionTableSize], Weights: HeldWeights(r.Options)}
	}
	return nil
}

// backendAddresses are those in vips, sorted. What cannot be read has none: it is refused
// where the row is read.
func backendAddresses(vips map[string]string) []netip.Addr {
	set := map[netip.Addr]struct{}{}
	for _, list := range vips {
		for word := range strings.SplitSeq(list, ",") {
			text := strings.TrimSpace(word)
			if at, err := netip.ParseAddrPort(text); err == nil {
				set[at.Addr()] = struct{}{}
			} else if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
				set[a] = struct{}{}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
}

func (s *southLB) putGroup(c Change) {
	for _, id := range store(s.groups, c).Datapaths {
		s.groupsWith.Delete(id, c.UUID)
	}
	for _, id := range s.groups[c.UUID].Datapaths {
		s.groupsWith.Add(id, c.UUID)
	}
}

// relates tells, before the change is applied, whether other rows may be needed after it.
func (s *southLB) relates(c Change) bool {
	old, had := s.groups[c.UUID]
	next, has := c.New.(DatapathGroup)
	return had != has || !slices.Equal(old.Datapaths, next.Datapaths)
}

// concerns tells whether a change is of what says where load balancers are. Most groups are
// those of logical flows, which come and go with networks.
func (s *southLB) concerns(c Change) bool {
	if c.Table == TableDatapathGroup {
		return s.lbAt.Has(c.UUID)
	}
	next, _ := c.New.(SBGlobal)
	old := s.globals[c.UUID]
	return s.follows && (old.TableSize != next.TableSize || !maps.Equal(old.Weights, next.Weights))
}

// has tells whether a load balancer is on a datapath.
func (s *southLB) has(b LoadBalancer, datapath UUID) bool {
	return slices.ContainsFunc(b.At, func(id UUID) bool {
		return id == datapath || slices.Contains(s.groups[id].Datapaths, datapath)
	})
}

// southBalancers lists the load balancers of a switch, by name.
func (r *Rows) southBalancers(datapath UUID) []LoadBalancer {
	set := map[UUID]struct{}{}
	add := func(at UUID) {
		for id := range r.south.lbAt.All(at) {
			set[id] = struct{}{}
		}
	}
	add(datapath)
	for group := range r.south.groupsWith.All(datapath) {
		add(group)
	}
	out := make([]LoadBalancer, 0, len(set))
	for id := range set {
		out = append(out, r.balancers[id])
	}
	slices.SortFunc(out, func(a, b LoadBalancer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID)) })
	return out
}

// southBalancers adds the conditions of the load balancers of a switch, and of what is found
// out about their backends, and tells whether there are any. Which ports are probed is not
// known of Southbound: the probe's address is, and its port's switch tells whose it is.
func (d *discovery) southBalancers(datapath UUID, sb ovsdb.Conditions) bool {
	if !ovsdb.UUID(datapath).Valid() {
		return false
	}
	at := ovsdb.Includes("datapaths", ovsdb.UUID(datapath))
	sb["Logical_DP_Group"] = append(sb["Logical_DP_Group"], at)
	sb["Load_Balancer"] = append(sb["Load_Balancer"], at)
	for group := range d.rows.south.groupsWith.All(datapath) {
		for _, column := range []string{"datapath_group", "ls_datapath_group"} {
			sb["Load_Balancer"] = append(sb["Load_Balancer"], ovsdb.Equal(column, ovsdb.UUID(group)))
		}
	}
	balancers := d.rows.southBalancers(datapath)
	for _, b := range balancers {
		for _, a := range b.Probed {
			sb["Service_Monitor"] = append(sb["Service_Monitor"], ovsdb.Equal("ip", a.String()))
			if a.Is6() {
				sb["Service_Monitor"] = append(sb["Service_Monitor"], ovsdb.Equal("ip", "["+a.String()+"]"))
			}
		}
	}
	return len(balancers) > 0
}

// southHealth is Health by Southbound alone, which does not tell which VIPs probe: any probe
// of the backend does. Networks may share addresses, so the probe's port is to be on one of
// the load balancer's switches, or nobody else's.
func (r *Rows) southHealth(b LoadBalancer, protocol string, backend netip.AddrPort) string {
	var all, near []UUID
	for id := range r.monitorAt.All(probed{protocol: protocol, at: backend}) {
		all = append(all, id)
		if p, ok := r.Port(r.monitors[id].LogicalPort); ok && r.south.has(b, p.Datapath) {
			near = append(near, id)
		}
	}
	if len(near) == 0 && len(all) == 1 {
		near = all
	}
	if len(near) != 1 {
		return ""
	}
	return r.monitors[near[0]].Status
}
