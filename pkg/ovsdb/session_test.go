package ovsdb_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

func startSB(t testing.TB) *ovsdbtest.Server {
	t.Helper()
	return ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound})
}

// chassisRow waits until the chassis satisfies ok.
func (r *recorder) waitRow(uuid string, ok func(*sb.Chassis) bool) {
	r.t.Helper()
	r.wait("chassis "+uuid, func() bool {
		row, there := r.rows[sb.ChassisTable][uuid].(*sb.Chassis)
		return there && ok(row)
	})
}

func TestInsertUpdateMutateDelete(t *testing.T) {
	server := startSB(t)
	s, r := run(t, sbConfig(server.Endpoint()))
	r.waitSync()
	uuid := addChassis(t, s, "a1", "2001:db8::1")
	r.waitChassis("a1")
	r.mu.Lock()
	if n := len(r.last.Changes); n != 2 {
		t.Errorf("one transaction of two rows came as a batch of %d changes", n)
	}
	r.mu.Unlock()

	transact(t, s, ovsdb.SetKeys(sb.ChassisTable, uuid, "other_config", map[string]string{"a": "1", "b": "2", "c": "3"}))
	r.waitRow(uuid, func(c *sb.Chassis) bool {
		return maps.Equal(c.OtherConfig, map[string]string{"a": "1", "b": "2", "c": "3"})
	})
	transact(t, s,
		ovsdb.DeleteKeys(sb.ChassisTable, uuid, "other_config", "a"),
		ovsdb.SetKeys(sb.ChassisTable, uuid, "other_config", map[string]string{"b": "two", "d": "4"}))
	r.waitRow(uuid, func(c *sb.Chassis) bool {
		return maps.Equal(c.OtherConfig, map[string]string{"b": "two", "c": "3", "d": "4"})
	})
	transact(t, s, ovsdb.DeleteKeys(sb.ChassisTable, uuid, "other_config", "b", "c", "d"))
	r.waitRow(uuid, func(c *sb.Chassis) bool { return c.OtherConfig == nil })

	transact(t, s, ovsdb.AddMembers(sb.ChassisTable, uuid, "transport_zones", "z", "m", "a"))
	r.waitRow(uuid, func(c *sb.Chassis) bool { return slices.Equal(c.TransportZones, []string{"a", "m", "z"}) })
	transact(t, s,
		ovsdb.RemoveMembers(sb.ChassisTable, uuid, "transport_zones", "m"),
		ovsdb.AddMembers(sb.ChassisTable, uuid, "transport_zones", "b"))
	r.waitRow(uuid, func(c *sb.Chassis) bool { return slices.Equal(c.TransportZones, []string{"a", "b", "z"}) })

	transact(t, s, ovsdb.Update(&sb.Chassis{UUID: uuid, NbCfg: 7, Hostname: "h \"2\"\\ü"}, "nb_cfg", "hostname", "transport_zones"))
	r.waitRow(uuid, func(c *sb.Chassis) bool {
		return c.NbCfg == 7 && c.Hostname == "h \"2\"\\ü" && c.TransportZones == nil && c.Name == "a1"
	})
	transact(t, s, ovsdb.Delete(sb.ChassisTable, uuid))
	r.waitChassis()
	r.wait("the encapsulation to go with it", func() bool { return r.countLocked() == 0 })
}

func TestTransactErrors(t *testing.T) {
	server := startSB(t)
	s, r := run(t, sbConfig(server.Endpoint()))
	ctx := context.Background()
	if _, err := s.Transact(ctx, ovsdb.Comment("early")); err != nil && !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("before the connection: %v", err)
	}
	r.waitSync()
	uuid := addChassis(t, s, "a1", "192.0.2.1")
	r.waitChassis("a1")

	encap := ovsdb.Insert(&sb.Encap{ChassisName: "a1", IP: "192.0.2.2", Type: "geneve"}, "e")
	_, err := s.Transact(ctx, encap, ovsdb.Insert(&sb.Chassis{Name: "a1", Encaps: []string{"e"}}, ""))
	var constraint *ovsdb.ConstraintError
	if !errors.As(err, &constraint) || constraint.Index != 2 {
		t.Errorf("a second chassis a1: %v", err)
	}
	_, err = s.Transact(ctx, ovsdb.Wait(&sb.Chassis{UUID: uuid, Name: "other"}, "name"))
	var refused *ovsdb.OperationError
	if !errors.As(err, &refused) || refused.Name != "timed out" || refused.Table != sb.ChassisTable {
		t.Errorf("wait for a name that is not there: %v", err)
	}
	transact(t, s, ovsdb.Wait(&sb.Chassis{UUID: uuid, Name: "a1"}, "name"), ovsdb.Comment("fine"))
	for name, op := range map[string]ovsdb.Operation{
		"no column":      ovsdb.Update(&sb.Chassis{UUID: uuid}, "nosuch"),
		"no columns":     ovsdb.Update(&sb.Chassis{UUID: uuid}),
		"no table":       ovsdb.Delete("Nosuch", uuid),
		"no UUID":        ovsdb.Delete(sb.ChassisTable, "a1"),
		"unknown column": ovsdb.SetKeys(sb.ChassisTable, uuid, "nosuch", map[string]string{"a": "b"}),
	} {
		if _, err := s.Transact(ctx, op); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if st := s.Status(); !st.Connected || !st.InSync || st.Rows != 2 || st.Model != "standalone" || !st.Leader {
		t.Errorf("status %+v", st)
	}
}

func TestReconnectAppliesDifference(t *testing.T) {
	server := startSB(t)
	s, r := run(t, sbConfig(server.Endpoint()))
	r.waitSync()
	addChassis(t, s, "stays", "192.0.2.1")
	gone := addChassis(t, s, "goes", "192.0.2.2")
	changed := addChassis(t, s, "changes", "2001:db8::3")
	r.waitChassis("changes", "goes", "stays")
	before := r.table(sb.ChassisTable)

	server.Stop()
	r.waitLost()
	if got := r.table(sb.ChassisTable); !maps.Equal(got, before) {
		t.Errorf("rows changed while disconnected: %v", got)
	}
	if _, err := s.Transact(context.Background(), ovsdb.Comment("x")); !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("Transact while disconnected: %v", err)
	}
	// The changes are made before the session can see the server again.
	r.mu.Lock()
	from := len(r.batches)
	r.mu.Unlock()
	other := startAside(t, server)
	other(`{"op":"delete","table":"Chassis","where":[["_uuid","==",["uuid","`+gone+`"]]]}`,
		`{"op":"update","table":"Chassis","where":[["_uuid","==",["uuid","`+changed+`"]]],"row":{"hostname":"new"}}`)
	r.waitSync()
	r.waitChassis("changes", "stays")
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []ovsdb.Change
	for _, b := range r.batches[from:] {
		changes = append(changes, b.Changes...)
	}
	if len(changes) != 3 { // chassis changed, chassis and its encapsulation gone
		t.Errorf("the difference has %d changes: %+v", len(changes), changes)
	}
}

// startAside runs the server and makes changes through a socket of its own, so
// that the order of reconnect and changes does not matter.
func startAside(t testing.TB, server *ovsdbtest.Server) func(...string) {
	t.Helper()
	server.Edit()
	return func(operations ...string) {
		server.Transact(operations...)
		server.Publish()
	}
}

func TestDatabaseReplaced(t *testing.T) {
	server := startSB(t)
	s, r := run(t, sbConfig(server.Endpoint()))
	r.waitSync()
	addChassis(t, s, "old", "192.0.2.1")
	r.waitChassis("old")
	server.Kill()
	r.waitLost()
	server.ReplaceDatabase()
	server.Run()
	r.waitSync()
	r.waitChassis()
	addChassis(t, s, "new", "192.0.2.1")
	r.waitChassis("new")
}

func TestOlderSchema(t *testing.T) {
	old, err := os.ReadFile("/usr/share/ovn/ovn-sb.ovsschema")
	if err != nil {
		t.Fatalf("the schema of the installed OVN: %v", err)
	}
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: old})
	config := sbConfig(server.Endpoint())
	config.Tables[sb.IGMPGroupTable] = nil
	config.Tables[sb.AdvertisedRouteTable] = nil
	config.Conditions = ovsdb.Conditions{
		sb.ChassisTable:         {ovsdb.All()},
		sb.IGMPGroupTable:       {ovsdb.Equal("chassis_name", "a1"), ovsdb.Equal("address", "224.0.0.9")},
		sb.AdvertisedRouteTable: {ovsdb.All()},
	}
	s, r := run(t, config)
	r.waitSync()
	version := s.Status().SchemaVersion
	if !s.Has(sb.IGMPGroupTable, "address") || !s.Has(sb.ChassisTable, "") {
		t.Errorf("schema %s: a column that every version has is missing", version)
	}
	if version < "20.29" && (s.Has(sb.AdvertisedRouteTable, "") || s.Has(sb.IGMPGroupTable, "chassis_name")) {
		t.Errorf("schema %s: Has tells of columns that came later", version)
	}
	uuid := transact(t, s, ovsdb.Insert(&sb.IGMPGroup{Address: "224.0.0.9"}, ""))[0].UUID
	r.wait("the group", func() bool { return r.rows[sb.IGMPGroupTable][uuid] != nil })
}

func TestEveryTableOfVSwitch(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.VSwitch, TCP: "::1"})
	db := vswitch.Database()
	config := ovsdb.Config{Database: db, Endpoints: server.TCPEndpoint(), Tables: ovsdb.Tables{}, Conditions: ovsdb.Conditions{}}
	for _, name := range db.Tables() {
		config.Tables[name] = nil
		config.Conditions[name] = []ovsdb.Clause{ovsdb.All()}
	}
	s, r := run(t, config)
	r.waitSync()
	tag := 42
	transact(t, s,
		ovsdb.Insert(&vswitch.Interface{Name: "if0"}, "if0"),
		ovsdb.Insert(&vswitch.QoS{Type: "x", Queues: map[int]string{0: "q0"}}, "qos"),
		ovsdb.Insert(&vswitch.Queue{OtherConfig: map[string]string{"a": "b"}}, "q0"),
		ovsdb.Insert(&vswitch.Port{Name: "p0", Interfaces: []string{"if0"}, Tag: &tag, Trunks: []int{9, 1, 100}, QOS: strp("qos")}, "p0"),
		ovsdb.Insert(&vswitch.Bridge{Name: "br", Ports: []string{"p0"}}, "br"),
		ovsdb.Insert(&vswitch.OpenvSwitch{Bridges: []string{"br"}}, ""))
	r.wait("all rows", func() bool { return r.countLocked() == 6 })
	for uuid, row := range r.table(vswitch.PortTable) {
		p := row.(*vswitch.Port)
		if *p.Tag != 42 || !slices.Equal(p.Trunks, []int{1, 9, 100}) {
			t.Errorf("port %+v", p)
		}
		transact(t, s, ovsdb.RemoveMembers(vswitch.PortTable, uuid, "trunks", 9),
			ovsdb.Update(&vswitch.Port{UUID: uuid}, "tag"))
		r.wait("the port's change", func() bool {
			p := r.rows[vswitch.PortTable][uuid].(*vswitch.Port)
			return p.Tag == nil && slices.Equal(p.Trunks, []int{1, 100})
		})
	}
	for uuid := range r.table(vswitch.QoSTable) {
		transact(t, s, ovsdb.Update(&vswitch.QoS{UUID: uuid}, "queues"))
		r.wait("the queue map to be empty", func() bool {
			return r.rows[vswitch.QoSTable][uuid].(*vswitch.QoS).Queues == nil
		})
	}
}

func strp(s string) *string { return &s }
