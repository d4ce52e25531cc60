package ovsdb_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// TestWithoutMonitorCondSince talks to a server before Open vSwitch 2.12, as a
// proxy makes it look: no monitor_cond_since, no _Server.
func TestWithoutMonitorCondSince(t *testing.T) {
	server := startSB(t)
	proxy := newLiar(t, server.Endpoint(), func(m json.RawMessage) []byte {
		var request struct {
			ID     int
			Method string
			Params []json.RawMessage
		}
		if err := json.Unmarshal(m, &request); err != nil {
			t.Errorf("client's message: %v", err)
			return nil
		}
		old := request.Method == "monitor_cond_since" ||
			request.Method == "monitor_cond" && string(request.Params[0]) == `"_Server"`
		if !old {
			return nil
		}
		name := "unknown method"
		if request.Method == "monitor_cond" {
			name = "unknown database"
		}
		return fmt.Appendf(nil, `{"id":%d,"result":null,"error":{"error":%q,"details":"x"}}`, request.ID, name)
	}, nil)
	s, r := run(t, sbConfig(proxy.Endpoint()))
	r.waitSync()
	uuid := addChassis(t, s, "a", "192.0.2.1")
	addChassis(t, s, "b", "2001:db8::2")
	r.waitChassis("a", "b")
	if err := s.SetConditions(ovsdb.Conditions{sb.ChassisTable: {ovsdb.Equal("name", "a")}}); err != nil {
		t.Fatal(err)
	}
	waitAnswered(r, s)
	r.waitChassis("a")
	proxy.Cut()
	r.waitLost()
	r.waitSync()
	transact(t, s, ovsdb.SetKeys(sb.ChassisTable, uuid, "other_config", map[string]string{"k": "v"}))
	r.waitRow(uuid, func(c *sb.Chassis) bool { return c.OtherConfig["k"] == "v" })
	if st := s.Status(); st.Connects != 2 || st.Resumed != 0 || st.Model != "" {
		t.Errorf("status %+v", st)
	}
}

// TestMalformedServer: one broken message of each kind costs a connection, the
// rows stay, and the next connection continues.
func TestMalformedServer(t *testing.T) {
	server := startSB(t)
	var nonsense atomic.Pointer[string]
	proxy := newLiar(t, server.Endpoint(), nil, func(m json.RawMessage) []byte {
		if lie := nonsense.Load(); lie != nil && bytes.Contains(m, []byte("update3")) {
			return []byte(*lie)
		}
		return m
	})
	writer, w := run(t, sbConfig(server.Endpoint()))
	w.waitSync()
	s, r := run(t, sbConfig(proxy.Endpoint()))
	r.waitSync()
	addChassis(t, writer, "kept", "192.0.2.1")
	r.waitChassis("kept")
	for i, lie := range []string{
		"\x00\xff", "HTTP/1.1 400 Bad Request\r\n", "{]", `{"id":null,"method":"update3","params":{}}`,
		`{"id":null,"method":"update3","params":["data","x",{"Chassis":{"u":{"modify":{"name":"x"}}}}]}`,
		`{"id":null,"method":"update3","params":["data","x",{"Chassis":{"u":{"insert":{"name":["set"]}}}}]}`,
		`{"id":"other","result":[]}`, `{"id":null,"method":"monitor_canceled","params":["data"]}`,
		`{"id":null,"method":"update3","params":["server",{"Database":{"u":null}}]}`,
		strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000),
	} {
		before := s.Status().Connects
		nonsense.Store(&lie)
		name := fmt.Sprintf("n%d", i)
		addChassis(t, writer, name, fmt.Sprintf("2001:db8::%x", i+1))
		waitStatus(t, s, "the loss", func(st ovsdb.Status) bool { return !st.Connected || st.Connects > before })
		nonsense.Store(nil)
		waitStatus(t, s, "a new connection", func(st ovsdb.Status) bool { return st.Connects > before && st.InSync })
		w.wait(name, func() bool { return slices.Contains(w.chassisNamesLocked(), name) })
		want := w.chassisNames()
		r.wait("the rows after nonsense", func() bool { return slices.Equal(r.chassisNamesLocked(), want) })
	}
}

// TestEchoBothWays: the server's echo requests are answered while the handler
// works, and a quiet connection stays.
func TestEchoBothWays(t *testing.T) {
	server := startSB(t)
	var asked, answered, probed atomic.Int32
	proxy := newLiar(t, server.Endpoint(), func(m json.RawMessage) []byte {
		switch {
		case bytes.Contains(m, []byte(`"id":"probe"`)):
			if !bytes.Contains(m, []byte(`"result":["are you there"]`)) {
				t.Errorf("answer to an echo request: %s", m)
			}
			answered.Add(1)
			return []byte(" ") // swallow it, the server did not ask
		case bytes.Contains(m, []byte(`"echo"`)):
			probed.Add(1)
		}
		return nil
	}, func(m json.RawMessage) []byte {
		if asked.Add(1) > 4 {
			return append([]byte(`{"id":"probe","method":"echo","params":["are you there"]}`), m...)
		}
		return m
	})
	config := sbConfig(proxy.Endpoint())
	config.InactivityProbe = 20 * time.Millisecond
	release := make(chan struct{})
	r := newRecorder(t)
	config.Handler = func(b ovsdb.Batch) {
		if len(b.Changes) > 0 {
			<-release // a slow handler
		}
		r.handle(b)
	}
	s, err := ovsdb.NewSession(config)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	r.waitSync()
	addChassis(t, s, "a", "192.0.2.1")
	deadline := time.Now().Add(30 * time.Second)
	for answered.Load() < 3 || probed.Load() < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("%d echo requests answered, %d sent", answered.Load(), probed.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	r.waitChassis("a")
	if st := s.Status(); st.Connects != 1 {
		t.Errorf("a quiet connection was lost: %+v", st)
	}
}

// TestLargeContent reads 5,000 rows at once and again after a restart, without a
// change.
func TestLargeContent(t *testing.T) {
	server := startSB(t)
	writer, w := run(t, portConfig(server.Endpoint()))
	w.waitSync()
	datapath := transact(t, writer, ovsdb.Insert(&sb.DatapathBinding{TunnelKey: 1}, ""))[0].UUID
	const rows = 5000
	var ops []ovsdb.Operation
	for i := range rows {
		ops = append(ops, ovsdb.Insert(&sb.PortBinding{
			LogicalPort: fmt.Sprintf("port-%05d", i), Datapath: datapath, TunnelKey: i + 1,
			ExternalIDs: map[string]string{"neutron:cidrs": fmt.Sprintf("10.0.%d.%d/16 2001:db8::%x/64", i/256, i%256, i)},
		}, ""))
	}
	transact(t, writer, ops...)
	w.wait("all rows", func() bool { return len(w.rows[sb.PortBindingTable]) == rows })
	config := portConfig(server.Endpoint())
	config.InactivityProbe = 500 * time.Millisecond
	s, r := run(t, config)
	waitAnswered(r, s)
	if n := len(r.table(sb.PortBindingTable)); n != rows || s.Status().Rows != rows {
		t.Errorf("%d rows in sync, status tells %d", n, s.Status().Rows)
	}
	server.Stop()
	r.waitLost()
	r.mu.Lock()
	from := len(r.batches)
	r.mu.Unlock()
	server.Run()
	r.waitSync()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.batches[from:] {
		if len(b.Changes) != 0 {
			t.Errorf("a restart without a change brought %d changes", len(b.Changes))
		}
	}
}

// TestTransactFromHandler: a handler may write and may change conditions.
func TestTransactFromHandler(t *testing.T) {
	server := startSB(t)
	config := sbConfig(server.Endpoint())
	config.Conditions = nil
	var s *ovsdb.Session
	r := newRecorder(t)
	var once atomic.Bool
	config.Handler = func(b ovsdb.Batch) {
		if b.InSync && once.CompareAndSwap(false, true) {
			addChassis(t, s, "a", "192.0.2.1")
			if err := s.SetConditions(ovsdb.Conditions{sb.ChassisTable: {ovsdb.All()}}); err != nil {
				t.Error(err)
			}
		}
		r.handle(b)
	}
	s, err := ovsdb.NewSession(config)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	r.waitChassis("a")
	waitAnswered(r, s)
}
