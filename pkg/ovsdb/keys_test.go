package ovsdb_test

import (
	"maps"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// Rows have the keys that the session keeps, through any change of the others.
func TestKeys(t *testing.T) {
	config := sbConfig(startSB(t).Endpoint())
	config.Keys = ovsdb.Keys{sb.ChassisTable: {"other_config": func(k string) bool { return k == "kept" || k == "kept too" }}}
	s, r := run(t, config)
	r.waitSync()
	uuid := addChassis(t, s, "a1", "2001:db8::1")
	r.waitChassis("a1")
	other := func(pairs map[string]string) ovsdb.Operation {
		return ovsdb.SetKeys(sb.ChassisTable, uuid, "other_config", pairs)
	}
	has := func(want map[string]string) {
		t.Helper()
		r.waitRow(uuid, func(c *sb.Chassis) bool { return maps.Equal(c.OtherConfig, want) })
	}
	transact(t, s, other(map[string]string{"kept": "1", "left out": "2"}))
	has(map[string]string{"kept": "1"})
	transact(t, s, other(map[string]string{"kept": "one", "left out": "two", "left out too": "3"}))
	has(map[string]string{"kept": "one"})
	transact(t, s, ovsdb.DeleteKeys(sb.ChassisTable, uuid, "other_config", "left out"), other(map[string]string{"kept too": "4"}))
	has(map[string]string{"kept": "one", "kept too": "4"})
	transact(t, s, ovsdb.DeleteKeys(sb.ChassisTable, uuid, "other_config", "kept", "kept too"))
	has(nil)
}

func TestKeysRefused(t *testing.T) {
	all := func(string) bool { return true }
	for _, keys := range []ovsdb.Keys{
		{"Chassiss": {"other_config": all}}, {sb.ChassisTable: {"otherconfig": all}}, {sb.ChassisTable: {"name": all}},
	} {
		config := sbConfig("tcp:192.0.2.1:6642")
		config.Keys, config.Handler = keys, func(ovsdb.Batch) {}
		if _, err := ovsdb.NewSession(config); err == nil {
			t.Errorf("%v is taken", keys)
		}
	}
}
