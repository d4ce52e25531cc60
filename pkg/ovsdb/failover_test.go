package ovsdb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func endpoints(servers ...*ovsdbtest.Server) string {
	var list []string
	for _, s := range servers {
		list = append(list, s.Endpoint())
	}
	return strings.Join(list, ",")
}

func without(all []*ovsdbtest.Server, one *ovsdbtest.Server) []*ovsdbtest.Server {
	return slices.DeleteFunc(slices.Clone(all), func(s *ovsdbtest.Server) bool { return s == one })
}

func TestClusterLeaderKilled(t *testing.T) {
	members := ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Southbound}, 3)
	config := sbConfig(endpoints(members...))
	config.LeaderOnly = true
	s, r := run(t, config)
	anywhere, follower := run(t, sbConfig(endpoints(members...)))
	r.waitSync()
	follower.waitSync()
	addChassis(t, s, "a", "192.0.2.1")
	follower.waitChassis("a")

	leader := ovsdbtest.Leader(t, members)
	if got := s.Status(); got.Endpoint != leader.Endpoint() || !got.Leader || got.Model != "clustered" {
		t.Errorf("with LeaderOnly the session is at %+v, the leader is %s", got, leader.Endpoint())
	}
	leader.Kill()
	r.waitLost()
	rest := without(members, leader)
	next := ovsdbtest.Leader(t, rest)
	r.wait("the new leader", func() bool { return r.last.InSync && r.last.Endpoint == next.Endpoint() })
	r.waitChassis("a")
	addChassis(t, s, "b", "2001:db8::2")
	r.waitChassis("a", "b")
	follower.waitChassis("a", "b")

	// A member alone has no quorum: nobody serves, nothing is deleted.
	other := without(rest, next)[0]
	other.Kill()
	r.waitLost()
	follower.waitLost()
	if got := r.chassisNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("without a quorum the copy has %v", got)
	}
	other.Run()
	leader.Run()
	r.waitSync()
	follower.waitSync()
	transact(t, anywhere, ovsdb.Comment("works again"))
	for _, st := range []ovsdb.Status{s.Status(), anywhere.Status()} {
		if st.Resumed == 0 {
			t.Errorf("no reconnect went on from the last transaction: %+v", st)
		}
	}
}

func TestClusterLeadershipMoves(t *testing.T) {
	members := ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Southbound}, 3)
	config := sbConfig(endpoints(members...))
	config.LeaderOnly = true
	s, r := run(t, config)
	r.waitSync()
	leader := ovsdbtest.Leader(t, members)
	// A snapshot makes a leader hand over first.
	leader.Appctl("cluster/leave", "OVN_Southbound")
	r.wait("another leader", func() bool { return r.last.InSync && r.last.Endpoint != leader.Endpoint() })
	addChassis(t, s, "a", "192.0.2.1")
	r.waitChassis("a")
}

func TestRelay(t *testing.T) {
	source := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound})
	relay := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, RelayOf: source.Endpoint()})
	s, r := run(t, sbConfig(relay.Endpoint()))
	r.waitSync()
	if st := s.Status(); st.Model != "relay" {
		t.Errorf("status %+v", st)
	}
	addChassis(t, s, "a", "192.0.2.1") // the relay forwards it
	r.waitChassis("a")
	// The relay keeps its clients for a while when its source goes away.
	source.Stop()
	source.Edit()
	source.Transact(`{"op":"delete","table":"Chassis","where":[]}`)
	source.Publish()
	r.waitChassis()
	waitAnswered(r, s)
}

// TestFailoverOfRelay: a relay without a source says so in _Server, at the start
// and later.
func TestFailoverOfRelay(t *testing.T) {
	source := startSB(t)
	orphan := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, RelayOf: "unix:/nonexistent/socket"})
	relay := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, RelayOf: source.Endpoint()})
	writer, w := run(t, sbConfig(source.Endpoint()))
	w.waitSync()
	addChassis(t, writer, "a", "192.0.2.1")

	// The second endpoint is the relay through a proxy which, later, tells what
	// a relay tells half a minute after its source has gone.
	var lost atomic.Bool
	var row atomic.Value
	proxy := newLiar(t, relay.Endpoint(), nil, func(m json.RawMessage) []byte {
		var reply struct {
			Result struct {
				Database map[string]struct {
					Initial struct{ Model string }
				}
			}
		}
		// Other replies have results of other types, which is no error here.
		_ = json.Unmarshal(m, &reply)
		for uuid, update := range reply.Result.Database {
			if update.Initial.Model == "relay" {
				row.Store(uuid)
			}
		}
		if lost.Load() && !bytes.Contains(m, []byte(`"update3"`)) {
			return bytes.ReplaceAll(m, []byte(`"connected":true`), []byte(`"connected":false`))
		}
		if lost.Load() {
			return []byte(`{"id":null,"method":"update2","params":["server",{"Database":{"` + row.Load().(string) +
				`":{"modify":{"connected":false}}}}]}`)
		}
		return m
	})
	config := sbConfig(orphan.Endpoint() + "," + proxy.Endpoint() + "," + source.Endpoint())
	config.InOrder = true
	config.CatchUp = time.Millisecond // the source cannot show that it is the relay's
	s, r := run(t, config)
	r.wait("the relay", func() bool { return r.last.InSync && r.last.Endpoint == proxy.Endpoint() })
	if err := s.Status().LastError; err == nil || !strings.Contains(err.Error(), "relay has lost its source") {
		t.Errorf("the orphan relay was left because of: %v", err)
	}
	r.waitChassis("a")
	lost.Store(true)
	addChassis(t, writer, "b", "2001:db8::2") // makes the relay say something
	r.wait("the source itself", func() bool { return r.last.InSync && r.last.Endpoint == source.Endpoint() })
	r.waitChassis("a", "b")
}

func TestFailoverOfUnreachable(t *testing.T) {
	server := startSB(t)
	config := sbConfig("unix:/nonexistent/socket,tcp:" + ovsdbtest.FreeAddress(t, "::1") + ",tcp:" +
		ovsdbtest.FreeAddress(t, "127.0.0.1") + "," + server.Endpoint())
	config.InOrder = true
	s, r := run(t, config)
	r.waitSync()
	if st := s.Status(); st.Endpoint != server.Endpoint() || st.LastError == nil {
		t.Errorf("status %+v", st)
	}
}

// TestFailoverOfSilent: a server that hangs with its connections open is left for
// the next one, and the difference between the two is applied once the wait for the first
// one is over.
func TestFailoverOfSilent(t *testing.T) {
	first, second := startSB(t), startSB(t)
	for i, server := range []*ovsdbtest.Server{first, second} {
		s, r := run(t, sbConfig(server.Endpoint()))
		r.waitSync()
		addChassis(t, s, []string{"first", "second"}[i], "192.0.2.1")
	}
	config := sbConfig(endpoints(first, second))
	config.InOrder = true
	config.InactivityProbe = 100 * time.Millisecond
	config.CatchUp = time.Millisecond
	s, r := run(t, config)
	r.waitChassis("first")
	first.Freeze()
	defer first.Thaw()
	r.waitChassis("second")
	r.wait("sync with the second", func() bool { return r.last.InSync && r.last.Endpoint == second.Endpoint() })
	if st := s.Status(); !strings.Contains(st.Behind, "another server than that of the rows, "+first.Endpoint()) {
		t.Errorf("status %+v", st)
	}
}

func TestSSL(t *testing.T) {
	pki := ovsdbtest.NewPKI(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, SSL: address, PKI: pki})
		good := pki.Files(t, "node1")
		strangers := ovsdbtest.NewPKI(t).Files(t, "node1")
		config := sbConfig(server.SSLEndpoint())
		if _, err := ovsdb.NewSession(config); err == nil {
			t.Error("an ssl endpoint without certificates is accepted")
		}
		// The files change while the session tries: first the server is not
		// trusted, then it is.
		config.TLS = ovsdb.TLSFiles{Cert: good.Cert, Key: good.Key, CA: t.TempDir() + "/ca.pem"}
		copyFile(t, config.TLS.CA, strangers.CA)
		s, r := run(t, config)
		waitStatus(t, s, "a refusal", func(st ovsdb.Status) bool {
			return st.LastError != nil && strings.Contains(st.LastError.Error(), "certificate signed by unknown authority")
		})
		copyFile(t, config.TLS.CA, good.CA)
		r.waitSync()
		addChassis(t, s, "a", "192.0.2.1")
		r.waitChassis("a")

		// The server refuses a client of another authority.
		config.TLS = ovsdb.TLSFiles{Cert: strangers.Cert, Key: strangers.Key, CA: good.CA}
		stranger, _ := run(t, config)
		waitStatus(t, stranger, "a refusal", func(st ovsdb.Status) bool { return st.LastError != nil })
		if stranger.Status().Connects != 0 {
			t.Error("a client of another authority is served")
		}
	}
}

func copyFile(t testing.TB, to, from string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	// By rename, as a certificate manager does: nobody reads half a file.
	if err := os.WriteFile(to+".new", raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

func waitStatus(t testing.TB, s *ovsdb.Session, what string, ok func(ovsdb.Status) bool) {
	t.Helper()
	deadline := time.Now().Add(ovsdbtest.Timeout)
	for !ok(s.Status()) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %+v", what, s.Status())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestRBAC uses the roles that ovn-northd itself writes.
func TestRBAC(t *testing.T) {
	pki := ovsdbtest.NewPKI(t)
	north := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	south := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, PKI: pki,
		Remotes: []string{"db:OVN_Southbound,SB_Global,connections"}})
	ovsdbtest.StartNorthd(t, north, south)

	config := sbConfig(south.Endpoint())
	for _, name := range []string{sb.RBACRoleTable, sb.SBGlobalTable, sb.ChassisPrivateTable} {
		config.Tables[name] = nil
		config.Conditions[name] = []ovsdb.Clause{ovsdb.All()}
	}
	admin, all := run(t, config)
	all.wait("northd's role", func() bool {
		return len(all.rows[sb.RBACRoleTable]) == 1 && len(all.rows[sb.SBGlobalTable]) == 1
	})
	address := ovsdbtest.FreeAddress(t, "::1")
	for uuid := range all.table(sb.SBGlobalTable) {
		transact(t, admin,
			ovsdb.Insert(&sb.Connection{Target: ovsdbtest.Passive("pssl", address), Role: "ovn-controller"}, "c"),
			ovsdb.Update(&sb.SBGlobal{UUID: uuid, Connections: []string{"c"}}, "connections"))
	}
	mine := transact(t, admin, ovsdb.Insert(&sb.ChassisPrivate{Name: "node1"}, ""))[0].UUID
	foreign := transact(t, admin, ovsdb.Insert(&sb.ChassisPrivate{Name: "node2"}, ""))[0].UUID
	chassis, other := addChassis(t, admin, "node1", "192.0.2.1"), addChassis(t, admin, "node2", "192.0.2.2")

	files := pki.Files(t, "node1")
	config.Endpoints = "ssl:" + address
	config.TLS = ovsdb.TLSFiles{Cert: files.Cert, Key: files.Key, CA: files.CA}
	s, r := run(t, config)
	r.waitSync()
	api := map[string]string{"sluice-api": "[2001:db8::1]:9443"}
	transact(t, s, ovsdb.SetKeys(sb.ChassisPrivateTable, mine, "external_ids", api))
	r.wait("the own row's change", func() bool {
		row := r.rows[sb.ChassisPrivateTable][mine].(*sb.ChassisPrivate)
		return row.ExternalIDs["sluice-api"] == api["sluice-api"]
	})
	for name, op := range map[string]ovsdb.Operation{
		"another chassis' row":  ovsdb.SetKeys(sb.ChassisPrivateTable, foreign, "external_ids", api),
		"another's Chassis":     ovsdb.SetKeys(sb.ChassisTable, other, "external_ids", api),
		"its own Chassis' name": ovsdb.Update(&sb.Chassis{UUID: chassis, Name: "x"}, "name"),
		"another's deletion":    ovsdb.Delete(sb.ChassisPrivateTable, foreign),
		"a datapath":            ovsdb.Insert(&sb.DatapathBinding{TunnelKey: 1}, ""),
		"a column not granted":  ovsdb.Update(&sb.ChassisPrivate{UUID: mine, Name: "x"}, "name"),
	} {
		_, err := s.Transact(context.Background(), op)
		var denied *ovsdb.PermissionError
		var general *ovsdb.OperationError
		if !errors.As(err, &denied) || !errors.As(err, &general) || !strings.Contains(err.Error(), "ovn-controller") {
			t.Errorf("%s: %v, want a PermissionError that names the role", name, err)
		}
	}
	transact(t, s, ovsdb.SetKeys(sb.ChassisPrivateTable, mine, "external_ids", map[string]string{"still": "works"}))
	transact(t, s, ovsdb.SetKeys(sb.ChassisTable, chassis, "external_ids", map[string]string{"of its own": "Chassis"}))

	// A role does not keep a server from showing that it is the one to be written to.
	south.Stop()
	r.waitLost()
	south.Run()
	r.waitSync()
	if st := s.Status(); st.Behind != "" {
		t.Errorf("after the restart: %q", st.Behind)
	}
}
