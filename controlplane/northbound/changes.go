package northbound

import (
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Changes are the rows that differ between two snapshots of a Store, by table and UUID. Tables that
// nobody wrote in between cost nothing, rows that nobody wrote a comparison of pointers: 100,000
// rows of a table take about 10 ms.
func Changes(before, after *Snapshot) (out []ovsdb.Change) {
	names := map[string]bool{} // an empty database has no tables
	for _, s := range []*Snapshot{before, after} {
		for name := range s.tables {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, differences(name, before.table(name).rows, after.table(name).rows)...)
	}
	return out
}

func differences(table string, before, after *btree.Map[string, ovsdb.Row]) (out []ovsdb.Change) {
	if before == after {
		return nil
	}
	old, now := before.Iter(), after.Iter()
	hasOld, hasNow := old.First(), now.First()
	for hasOld || hasNow {
		switch {
		case !hasNow || hasOld && old.Key() < now.Key():
			out = append(out, ovsdb.Change{Table: table, UUID: old.Key(), Old: old.Value()})
			hasOld = old.Next()
		case !hasOld || now.Key() < old.Key():
			out = append(out, ovsdb.Change{Table: table, UUID: now.Key(), New: now.Value()})
			hasNow = now.Next()
		default:
			if old.Value() != now.Value() {
				out = append(out, ovsdb.Change{Table: table, UUID: now.Key(), Old: old.Value(), New: now.Value()})
			}
			hasOld, hasNow = old.Next(), now.Next()
		}
	}
	return out
}
