package northbound

import (
	"iter"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Index finds rows of a table by a key that each row has none, one or several of.
type Index[R ovsdb.Row] struct{ *index }

// index is an Index without the type of its rows.
type index struct {
	table string
	// column is what the keys are made of.
	column string
	keys   func(ovsdb.Row) []string
	// clause is the same question to the server; nil if it cannot be asked.
	clause func(key string) ovsdb.Clause
	// unique: the schema allows one row for a key. A row that is found is guarded by its UUID then: the
	// server has no index and looks at all rows of the table for a clause.
	unique bool
}

// declared are all indices, by table.
var declared = map[string][]*index{}

// Declare makes an index of a column's content; keys is called with whole rows. It is for package
// variables: what is declared after a Store was made has no rows. Without clause the server cannot
// be asked the same: a Tx does not guard which rows are found, but their named columns.
func Declare[R ovsdb.Row](column string, keys func(R) []string, clause func(key string) ovsdb.Clause) Index[R] {
	var none R
	ix := &index{
		table: none.OVSDBTable(), column: column, clause: clause,
		keys: func(row ovsdb.Row) []string { return keys(row.(R)) },
	}
	declared[ix.table] = append(declared[ix.table], ix)
	return Index[R]{ix}
}

func byName[R ovsdb.Row](name func(R) string) Index[R] {
	return Declare("name", func(row R) []string { return []string{name(row)} },
		func(key string) ovsdb.Clause { return ovsdb.Equal("name", key) })
}

// byUniqueName is byName of a table where a name is one row's alone.
func byUniqueName[R ovsdb.Row](name func(R) string) Index[R] {
	ix := byName(name)
	ix.unique = true
	return ix
}

// byExternalID finds the rows that have a value under a key of external_ids.
func byExternalID[R ovsdb.Row](id string, pairs func(R) map[string]string) Index[R] {
	return Declare("external_ids", func(row R) []string {
		if v, ok := pairs(row)[id]; ok {
			return []string{v}
		}
		return nil
	}, func(key string) ovsdb.Clause { return ovsdb.IncludesPair("external_ids", id, key) })
}

// byMember finds the rows that refer to a row in a column that is a set.
func byMember[R ovsdb.Row](column string, members func(R) []string) Index[R] {
	return Declare(column, members, func(uuid string) ovsdb.Clause { return ovsdb.Includes(column, ovsdb.UUID(uuid)) })
}

// The indices. Those with Of lead from a row to the rows that refer to it.
var (
	LoadBalancerByName = byName(func(r *nb.LoadBalancer) string { return r.Name })
	SwitchByName       = byName(func(r *nb.LogicalSwitch) string { return r.Name })
	RouterByName       = byName(func(r *nb.LogicalRouter) string { return r.Name })
	SwitchPortByName   = byUniqueName(func(r *nb.LogicalSwitchPort) string { return r.Name })
	RouterPortByName   = byUniqueName(func(r *nb.LogicalRouterPort) string { return r.Name })

	// SubnetOptions have the ID of the Neutron subnet that they are of.
	SubnetOptions = byExternalID("subnet_id", func(r *nb.DHCPOptions) map[string]string { return r.ExternalIDs })

	SwitchOfPort         = byMember("ports", func(r *nb.LogicalSwitch) []string { return r.Ports })
	RouterOfPort         = byMember("ports", func(r *nb.LogicalRouter) []string { return r.Ports })
	SwitchOfLoadBalancer = byMember("load_balancer", func(r *nb.LogicalSwitch) []string { return r.LoadBalancer })
	RouterOfLoadBalancer = byMember("load_balancer", func(r *nb.LogicalRouter) []string { return r.LoadBalancer })
	LoadBalancerOfCheck  = byMember("health_check", func(r *nb.LoadBalancer) []string { return r.HealthCheck })
)

// Reader is a *Snapshot or a *Tx.
type Reader interface {
	get(table, uuid string, columns []string) ovsdb.Row
	find(ix *index, key string, columns []string) []ovsdb.Row
	peek(table, uuid string) ovsdb.Row
}

// Get is the row with a UUID. A Tx guards that it is there, and the named columns.
func Get[R ovsdb.Row](from Reader, uuid string, columns ...string) (row R, ok bool) {
	row, ok = from.get(row.OVSDBTable(), uuid, columns).(R)
	return row, ok
}

// Peek is the row with a UUID, read-only, and nothing guards it: for the choice of what to read.
func Peek[R ovsdb.Row](from Reader, uuid string) (row R, ok bool) {
	row, ok = from.peek(row.OVSDBTable(), uuid).(R)
	return row, ok
}

// Find are the rows that an index has under a key, by UUID. A Tx guards which rows these are, and
// their named columns.
func Find[R ovsdb.Row](from Reader, ix Index[R], key string, columns ...string) []R {
	found := from.find(ix.index, key, columns)
	rows := make([]R, len(found))
	for i, row := range found {
		rows[i] = row.(R)
	}
	return rows
}

// One is the first row that an index has under a key.
func One[R ovsdb.Row](from Reader, ix Index[R], key string, columns ...string) (row R, ok bool) {
	if found := Find(from, ix, key, columns...); len(found) > 0 {
		return found[0], true
	}
	return row, false
}

// All are the rows of a table, by UUID. They are the snapshot's own: read-only.
func All[R ovsdb.Row](s *Snapshot) iter.Seq[R] {
	var none R
	return func(yield func(R) bool) {
		s.table(none.OVSDBTable()).rows.Scan(func(_ string, row ovsdb.Row) bool { return yield(row.(R)) })
	}
}
