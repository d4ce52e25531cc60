package ovsdb_test

import (
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// A select finds rows that are not followed, by all its clauses; it takes no
// mistake for an answer.
func TestSelect(t *testing.T) {
	server := startSB(t)
	config := sbConfig(server.Endpoint())
	config.Conditions = nil
	s, r := run(t, config)
	r.waitSync()
	a := addChassis(t, s, "a", "192.0.2.1")
	addChassis(t, s, "b", "192.0.2.2")
	transact(t, s, ovsdb.SetKeys(sb.ChassisTable, a, "other_config", map[string]string{"role": "gw"}))
	for _, row := range []struct {
		where []ovsdb.Clause
		want  int
	}{
		{[]ovsdb.Clause{ovsdb.IncludesPair("other_config", "role", "gw")}, 1},
		{[]ovsdb.Clause{ovsdb.IncludesPair("other_config", "role", "x")}, 0},
		{[]ovsdb.Clause{ovsdb.Equal("name", "a"), ovsdb.Equal("_uuid", ovsdb.UUID(a))}, 1},
		{[]ovsdb.Clause{ovsdb.Equal("name", "b"), ovsdb.Equal("_uuid", ovsdb.UUID(a))}, 0},
	} {
		result, err := s.Transact(t.Context(), ovsdb.Select(sb.ChassisTable, []string{"name"}, row.where...))
		if err != nil || len(result[0].Rows) != row.want {
			t.Errorf("%v: %+v, %v", row.where, result, err)
			continue
		}
		for _, found := range result[0].Rows {
			if c := found.(*sb.Chassis); c.UUID != a || c.Name != "a" {
				t.Errorf("%v: %+v", row.where, c)
			}
		}
	}
	for name, op := range map[string]ovsdb.Operation{
		"no clause": ovsdb.Select(sb.ChassisTable, []string{"name"}),
		"all rows":  ovsdb.Select(sb.ChassisTable, []string{"name"}, ovsdb.All()),
		"no column": ovsdb.Select(sb.ChassisTable, []string{"nonsense"}, ovsdb.Equal("name", "a")),
		"no value":  ovsdb.Select(sb.ChassisTable, []string{"name"}, ovsdb.Equal("_uuid", "a")),
		"no table":  ovsdb.Select("Nonsense", []string{"name"}, ovsdb.Equal("name", "a")),
	} {
		if _, err := s.Transact(t.Context(), op); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
