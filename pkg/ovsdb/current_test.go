package ovsdb_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// keeps makes it an error when the chassis is not there any more while InSync says true.
func (r *recorder) keeps(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.always = func() string {
		if r.last.InSync && !slices.Contains(r.chassisNamesLocked(), name) {
			return "chassis " + name + " is gone"
		}
		return ""
	}
}

// tried waits until the session has come to the server, and has taken it or not.
func tried(t testing.TB, s *ovsdb.Session, server *ovsdbtest.Server) {
	t.Helper()
	waitStatus(t, s, "an attempt at "+server.Endpoint(), func(st ovsdb.Status) bool {
		return st.Endpoint == server.Endpoint() || st.LastError != nil && strings.HasPrefix(st.LastError.Error(), server.Endpoint())
	})
}

// sources starts one server of each model that relays have as a source.
func sources(t *testing.T, run func(t *testing.T, source *ovsdbtest.Server)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) { run(t, startSB(t)) })
	t.Run("clustered", func(t *testing.T) {
		run(t, ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Southbound}, 1)[0])
	})
}

// TestRelayThatLags: a relay whose source says nothing more looks as any other does, and is
// not taken until its content is as new as what the session has seen.
func TestRelayThatLags(t *testing.T) {
	sources(t, func(t *testing.T, source *ovsdbtest.Server) {
		relay := func(of *ovsdbtest.Server) *ovsdbtest.Server {
			return ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, RelayOf: of.Endpoint()})
		}
		first, between := relay(source), relay(source)
		lagging := relay(between)
		writer, w := run(t, sbConfig(source.Endpoint()))
		w.waitSync()
		addChassis(t, writer, "old", "192.0.2.1")
		_, there := run(t, sbConfig(lagging.Endpoint()))
		there.waitChassis("old")

		config := sbConfig(endpoints(first, lagging))
		config.InOrder = true
		config.InactivityProbe = 200 * time.Millisecond
		s, r := run(t, config)
		r.wait("the first relay", func() bool { return r.last.InSync && r.last.Endpoint == first.Endpoint() })
		between.Freeze()
		addChassis(t, writer, "new", "2001:db8::2")
		r.waitChassis("new", "old")
		r.keeps("new")
		first.Kill()
		r.waitLost()
		tried(t, s, lagging)
		between.Thaw()
		r.wait("the other relay", func() bool { return r.last.InSync && r.last.Endpoint == lagging.Endpoint() })
		r.waitChassis("new", "old")
	})
}

// TestStandbyThatLags: a standby of ovsdb-server's replication takes no writes, so it
// cannot show that it has what the active server has. It is not taken while the session
// waits for a better one, and when it is, the status says why its rows may be older. An
// address that moves to a standby hides nothing of that.
func TestStandbyThatLags(t *testing.T) {
	active := startSB(t)
	between := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, RelayOf: active.Endpoint()})
	standby := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound, SyncFrom: between.Endpoint()})
	writer, w := run(t, sbConfig(active.Endpoint()))
	w.waitSync()
	addChassis(t, writer, "old", "192.0.2.1")
	_, there := run(t, sbConfig(standby.Endpoint()))
	there.waitChassis("old")

	config := sbConfig(endpoints(active, standby))
	config.InOrder = true
	config.InactivityProbe = 200 * time.Millisecond
	config.CatchUp = time.Hour
	patient, r := run(t, config)
	config.CatchUp = time.Millisecond
	hasty, h := run(t, config)
	address := ovsdbtest.NewProxy(t, active.Endpoint())
	config.Endpoints, config.CatchUp = address.Endpoint(), time.Hour
	moved, m := run(t, config)
	between.Freeze()
	addChassis(t, writer, "new", "2001:db8::2")
	r.waitChassis("new", "old")
	h.waitChassis("new", "old")
	m.waitChassis("new", "old")
	r.keeps("new")
	m.keeps("new")

	active.Freeze()
	address.Turn(standby.Endpoint())
	waitStatus(t, moved, "the refusal", func(st ovsdb.Status) bool { return strings.Contains(st.Behind, "takes no writes") })
	tried(t, patient, standby)
	h.wait("the standby, after the wait", func() bool { return h.last.InSync && h.last.Endpoint == standby.Endpoint() })
	h.waitChassis("old")
	for name, st := range map[string]ovsdb.Status{"patient": patient.Status(), "hasty": hasty.Status()} {
		if !strings.Contains(st.Behind, "another server") || st.Connected != (name == "hasty") {
			t.Errorf("%s: status %+v", name, st)
		}
	}
	active.Thaw()
	r.wait("the active server again", func() bool { return r.last.InSync && r.last.Endpoint == active.Endpoint() })
	if st := patient.Status(); st.Behind != "" {
		t.Errorf("back at the active server: %q", st.Behind)
	}
	between.Thaw()
	h.waitChassis("new", "old")
	// Promoted, the standby is the one that is written to.
	standby.Appctl("ovsdb-server/disconnect-active-ovsdb-server")
	m.waitSync()
	m.waitChassis("new", "old")
}

// TestClusterRestored: the members of a cluster that was restored from a backup are behind
// for ever. They are used after a while, and the status says why.
func TestClusterRestored(t *testing.T) {
	server := ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Southbound}, 1)[0]
	writer, w := run(t, sbConfig(server.Endpoint()))
	w.waitSync()
	addChassis(t, writer, "old", "192.0.2.1")
	server.Stop()
	restore := server.Backup()
	server.Run()

	config := sbConfig(server.Endpoint())
	config.CatchUp = time.Hour
	patient, r := run(t, config)
	config.CatchUp = 100 * time.Millisecond
	hasty, h := run(t, config)
	w.waitSync()
	addChassis(t, writer, "new", "2001:db8::2")
	r.waitChassis("new", "old")
	h.waitChassis("new", "old")
	r.keeps("new")
	server.Stop()
	restore()
	server.Run()
	h.wait("the restored database", func() bool { return h.last.InSync && !slices.Contains(h.chassisNamesLocked(), "new") })
	waitStatus(t, patient, "the refusal", func(st ovsdb.Status) bool { return strings.Contains(st.Behind, "is behind: at log entry") })
	if st := hasty.Status(); !strings.Contains(st.Behind, "is behind: at log entry") {
		t.Errorf("status %+v", st)
	}
	if st := patient.Status(); st.Connected {
		t.Errorf("status %+v", st)
	}
	if got := r.chassisNames(); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("rows %v", got)
	}
}
