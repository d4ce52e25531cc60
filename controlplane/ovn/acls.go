package ovn

import (
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn/match"
	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// The keys of options that ACLs have, and NB_Global for them.
const (
	optionAfterLB     = "apply-after-lb"
	optionDefaultDrop = "default_acl_drop"
)

// ACL is a row of NB ACL. It is followed with Needs.ACLs only, as are the rows
// below.
type ACL struct {
	UUID UUID
	// FromPort: its direction is from-lport.
	FromPort bool
	Priority int
	// Tier is 0 before OVN 23.09.
	Tier          int
	Action, Match string
	// AfterLB is options:apply-after-lb.
	AfterLB bool
}

// PortGroup is a row of NB Port_Group.
type PortGroup struct {
	UUID        UUID
	Name        string
	Ports, ACLs []UUID
}

// AddressSet is a row of SB Address_Set: a set of the Northbound database, or one that
// ovn-northd makes of the addresses of a port group.
type AddressSet struct {
	UUID      UUID
	Name      string
	Addresses []string
}

// NBGlobal is the row of NB_Global.
type NBGlobal struct {
	UUID UUID
	// DefaultDrop: what no ACL speaks of is dropped.
	DefaultDrop bool
	// TableSize is options:sluice-m, as it is there.
	TableSize string
	// Weights are those of backends that are held there: see HeldWeights.
	Weights map[UUID]string
}

// Key is the row's _uuid.
func (a ACL) Key() UUID { return a.UUID }

// Key is the row's _uuid.
func (g PortGroup) Key() UUID { return g.UUID }

// Key is the row's _uuid.
func (s AddressSet) Key() UUID { return s.UUID }

// Key is the row's _uuid.
func (g NBGlobal) Key() UUID { return g.UUID }

func (ACL) table() Table        { return TableACL }
func (PortGroup) table() Table  { return TablePortGroup }
func (AddressSet) table() Table { return TableAddressSet }
func (NBGlobal) table() Table   { return TableNBGlobal }

// aclRows are the rows of this file, and the indices of them.
type aclRows struct {
	// follows is what FollowACLs was told.
	follows  bool
	acls     map[UUID]ACL
	groups   map[UUID]PortGroup
	sets     map[UUID]AddressSet
	globals  map[UUID]NBGlobal
	groupsOf index[UUID] // Logical_Switch_Port → Port_Groups
	groupsBy index[UUID] // ACL → Port_Groups
	setName  index[string]
	aclsBy   index[string] // address set → ACLs that name it
	// setChanges counts those of address sets.
	setChanges uint64
}

func newACLRows() aclRows {
	return aclRows{acls: map[UUID]ACL{}, groups: map[UUID]PortGroup{}, sets: map[UUID]AddressSet{}, globals: map[UUID]NBGlobal{}, groupsOf: index[UUID]{}, groupsBy: index[UUID]{},
		setName: index[string]{}, aclsBy: index[string]{}}
}

// allNB are the rows of the Northbound database, by table.
func (r *aclRows) allNB() [][]Row {
	return [][]Row{values(r.acls), values(r.groups), values(r.globals)}
}

func (r *aclRows) put(c Change) {
	switch c.Table {
	case TableACL:
		for _, set := range match.AddressSets(store(r.acls, c).Match) {
			r.aclsBy.Delete(set, c.UUID)
		}
		for _, set := range match.AddressSets(r.acls[c.UUID].Match) {
			r.aclsBy.Add(set, c.UUID)
		}
	case TablePortGroup:
		r.putGroup(c)
	case TableAddressSet:
		r.setChanges++
		r.setName.Delete(store(r.sets, c).Name, c.UUID)
		if s, ok := r.sets[c.UUID]; ok {
			r.setName.Add(s.Name, c.UUID)
		}
	case TableNBGlobal:
		store(r.globals, c)
	}
}

// putGroup takes a port group. Some have all ports of a cloud, and get one more at a time.
func (r *aclRows) putGroup(c Change) {
	old := store(r.groups, c)
	now := r.groups[c.UUID]
	for _, id := range beside(old.Ports, now.Ports, true) {
		r.groupsOf.Delete(id, c.UUID)
	}
	for _, id := range beside(now.Ports, old.Ports, true) {
		r.groupsOf.Add(id, c.UUID)
	}
	for _, id := range old.ACLs {
		r.groupsBy.Delete(id, c.UUID)
	}
	for _, id := range now.ACLs {
		r.groupsBy.Add(id, c.UUID)
	}
}

// relates tells, before the change is applied, whether other rows are needed after it.
func (r *aclRows) relates(c Change) bool {
	if !r.follows {
		return false
	}
	switch c.Table {
	case TableACL:
		old, had := r.acls[c.UUID]
		next, has := c.New.(ACL)
		return had != has || old.FromPort != next.FromPort || !slices.Equal(match.AddressSets(old.Match), match.AddressSets(next.Match))
	case TablePortGroup, TableLogicalSwitchPort:
		return true
	}
	return false
}

// FollowACLs says whether the ACLs of VMs' ports are followed, before any row is
// there.
func (r *Rows) FollowACLs(yes bool) { r.aclRows.follows = yes }

// ACLsOf are the ACLs of direction from-lport that apply to a port, those of its switch
// and of its port groups, and the names of these. They are not known as long as a row of
// them is not there, or when there is no Northbound session.
func (r *Rows) ACLsOf(port string, datapath UUID) (acls []ACL, groups map[string]bool, known bool) {
	lsp, ok := multimap.First(r.lspByName, port)
	if !ok || !r.aclRows.follows || len(r.globals) == 0 {
		return nil, nil, false
	}
	sw, ok := r.Switch(datapath)
	if !ok {
		return nil, nil, false
	}
	ids := slices.Clone(sw.ACLs)
	groups = map[string]bool{}
	for id := range r.groupsOf.All(lsp) {
		g := r.groups[id]
		groups[g.Name] = true
		ids = append(ids, g.ACLs...)
	}
	slices.Sort(ids)
	acls, ok = collect(slices.Compact(ids), r.acls)
	return slices.DeleteFunc(acls, func(a ACL) bool { return !a.FromPort }), groups, ok
}

// AddressSet finds the members of an address set, as ovn-controller knows them.
func (r *Rows) AddressSet(name string) ([]string, bool) {
	id, ok := multimap.First(r.setName, name)
	return r.sets[id].Addresses, ok
}

// AddressSetsChanged is another number after each change of one. Numbers of two stores say
// nothing of each other.
func (r *Rows) AddressSetsChanged() uint64 { return r.setChanges }

// DefaultACLDrop tells whether what no ACL speaks of is dropped.
func (r *Rows) DefaultACLDrop() bool {
	for _, g := range r.globals {
		if g.DefaultDrop {
			return true
		}
	}
	return false
}

// acls adds the conditions of the ACLs of VMs here.
func (d *discovery) acls(own UUID, w Wanted) {
	c := w.NB
	wanted := map[string]map[UUID]struct{}{}
	want := func(table string, ids ...UUID) {
		for _, id := range ids {
			if _, asked := wanted[table][id]; asked || !ovsdb.UUID(id).Valid() {
				continue
			}
			if wanted[table] == nil {
				wanted[table] = map[UUID]struct{}{}
			}
			wanted[table][id] = struct{}{}
			clause := ovsdb.Equal("_uuid", ovsdb.UUID(id))
			if table == "Port_Group" {
				clause = ovsdb.Includes("ports", ovsdb.UUID(id))
			}
			c[table] = append(c[table], clause)
		}
	}
	for id := range d.rows.servedAt.All(own) {
		p := d.rows.ports[id]
		c["Logical_Switch_Port"] = append(c["Logical_Switch_Port"], ovsdb.Equal("name", p.LogicalPort))
		want("Logical_Switch", d.rows.datapaths[p.Datapath].NBUUID())
		if sw, ok := d.rows.Switch(p.Datapath); ok {
			want("ACL", sw.ACLs...)
		}
		if lsp, ok := multimap.First(d.rows.lspByName, p.LogicalPort); ok {
			want("Port_Group", lsp)
			for g := range d.rows.groupsOf.All(lsp) {
				want("ACL", d.rows.groups[g].ACLs...)
			}
		}
	}
	sets := map[string]struct{}{}
	for id := range wanted["ACL"] {
		if a := d.rows.aclRows.acls[id]; a.FromPort {
			for _, s := range match.AddressSets(a.Match) {
				sets[s] = struct{}{}
			}
		}
	}
	for s := range sets {
		w.SB["Address_Set"] = append(w.SB["Address_Set"], ovsdb.Equal("name", s))
	}
}

func convertACLs(row ovsdb.Row) Row {
	switch r := row.(type) {
	case *nb.ACL:
		return ACL{UUID: UUID(r.UUID), FromPort: r.Direction == "from-lport", Priority: r.Priority, Tier: r.Tier, Action: r.Action, Match: r.Match,
			AfterLB: ovsdb.Bool(r.Options, optionAfterLB)}
	case *nb.PortGroup:
		return PortGroup{UUID: UUID(r.UUID), Name: r.Name, Ports: uuids(r.Ports), ACLs: uuids(r.ACLs)}
	case *sb.AddressSet:
		return AddressSet{UUID: UUID(r.UUID), Name: r.Name, Addresses: r.Addresses}
	case *nb.NBGlobal:
		return NBGlobal{UUID: UUID(r.UUID), DefaultDrop: ovsdb.Bool(r.Options, optionDefaultDrop), TableSize: r.Options[optionTableSize], Weights: HeldWeights(r.Options)}
	}
	return nil
}
