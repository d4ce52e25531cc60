package octavia

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// southbound is a Southbound database with rows of Service_Monitor, and Probes that follow it.
type southbound struct {
	cloud
	probes  *Probes
	session *ovsdb.Session
}

func (c cloud) southbound(raw []byte) southbound {
	c.Helper()
	server := ovsdbtest.Start(c.T, ovsdbtest.Options{Schema: raw})
	p, err := NewProbes(server.Endpoint(), ovsdb.TLSFiles{}, slog.New(slog.DiscardHandler))
	if err != nil {
		c.Fatal(err)
	}
	session, err := ovsdb.NewSession(ovsdb.Config{
		Database: sb.Database(), Endpoints: server.Endpoint(), Handler: func(ovsdb.Batch) {}, Tables: ovsdb.Tables{sb.ServiceMonitorTable: nil},
	})
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	go func() { done <- session.Run(ctx) }()
	c.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				c.Error(err)
			}
		}
	})
	s := southbound{c, p, session}
	s.wait("the session", func() bool { return session.Status().InSync })
	return s
}

func (s southbound) wait(what string, ok func() bool) {
	s.Helper()
	for until := time.Now().Add(ovsdbtest.Timeout); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			s.Fatalf("waited in vain for %s", what)
		}
	}
}

func (s southbound) write(operations ...ovsdb.Operation) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	if _, err := s.session.Transact(ctx, operations...); err != nil {
		s.Fatal(err)
	}
}

// status writes the status of some Service_Monitors, in one transaction.
func (s southbound) status(status string, monitors ...int) {
	s.Helper()
	var operations []ovsdb.Operation
	for _, n := range monitors {
		operations = append(operations, ovsdb.Update(&sb.ServiceMonitor{UUID: uuidOf(80 + n), Status: &status}, "status"))
	}
	s.write(operations...)
}

// States of members follow the probes of ovn-controller: of members that are probed, have not been
// disabled, and by address, port and protocol as a whole. Those of the provider stay as they are.
func TestProbes(t *testing.T) {
	for name, raw := range map[string][2][]byte{"23.03": {schema.Northbound2303, schema.Southbound2303}, "25.03": {schema.Northbound, schema.Southbound}} {
		t.Run(name, func(t *testing.T) { testProbes(t, raw[0], raw[1]) })
	}
}

func testProbes(t *testing.T, north, south []byte) {
	c := newCloud(t, north)
	c.router(1, 1, 2)
	// 10.0.1.1 begins the address 10.0.1.11; the provider took one for the other.
	members := []string{"10.0.1.1:80", "10.0.1.11:80", "10.0.1.12:80", "[fd00:1::7]:80", "10.0.1.13:80"}
	initial := []string{rowform.StatusOnline, rowform.StatusOnline, rowform.StatusOffline, rowform.StatusOnline, rowform.StatusNoMonitor}
	c.commit(func(tx *northbound.Tx) error {
		ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(1), "ports")
		mappings := map[string]string{}
		for i, m := range members[:4] {
			a := netip.MustParseAddrPort(m).Addr()
			port := fmt.Sprintf("vm-%d", i)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(70 + i), Name: port})
			ls.Ports = append(ls.Ports, uuidOf(70+i))
			if mappings[a.String()] = port + ":10.0.1.99"; a.Is6() {
				delete(mappings, a.String())
				mappings["["+a.String()+"]"] = port + ":[fd00:1::99]"
			}
		}
		tx.Update(ls, "ports")
		for i, id := range []string{"lb1", "provider"} {
			v6 := rowform.VIP{Address: netip.MustParseAddr(fmt.Sprintf("fd00:1::%d", 10+i)), Port: "port-6"}
			b := New(tx, id, uuidOf(11+2*i), c.network(tx, 1), rowform.VIP{Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(100 + i)}), Port: id}, v6)
			if id == "lb1" {
				b.SetAttributes(Attributes{Name: id})
			}
			for _, protocol := range []string{"tcp", "udp"} {
				r := b.Row(protocol, uuidOf(12+2*i))
				r.Pools = append(r.Pools, rowform.Pool{ID: id + protocol, Enabled: true})
				r.Listeners = append(r.Listeners, rowform.Listener{ID: id + protocol, Port: 80, Pool: id + protocol, Enabled: true})
				for j, m := range members {
					b.AddMember(r, 0, rowform.Member{ID: fmt.Sprintf("m%d", j), Addr: netip.MustParseAddrPort(m), Subnet: "s"}, c.network(tx, 1), initial[j])
				}
				r.Mappings, r.Monitors = mappings, []string{"hm"}
				check := &nb.LoadBalancerHealthCheck{UUID: northbound.NewUUID(), Vip: r.VIP.Address.String() + ":80"}
				tx.Insert(check)
				r.Checks = []string{check.UUID}
			}
			b.Save()
		}
		return nil
	})
	s := c.southbound(south)
	for n, m := range members[:4] {
		at := netip.MustParseAddrPort(m)
		s.write(ovsdb.InsertAs(&sb.ServiceMonitor{UUID: uuidOf(80 + n), IP: at.Addr().String(), Port: int(at.Port()), Protocol: new("tcp"), LogicalPort: fmt.Sprintf("vm-%d", n)}))
	}
	r := c.reactor()
	r.Heed(s.probes)
	for _, step := range []struct {
		what     string
		change   func()
		statuses int    // of Service_Monitors that have one
		want     string // of the members
	}{
		{"before the first probe", func() {}, 0, "ONLINE ONLINE OFFLINE ONLINE NO_MONITOR"},
		{"all answer", func() { s.status("online", 0, 1, 2, 3) }, 4, "ONLINE ONLINE OFFLINE ONLINE NO_MONITOR"},
		{"one does not", func() { s.status("offline", 0) }, 4, "ERROR ONLINE OFFLINE ONLINE NO_MONITOR"},
		{"the other one", func() { s.status("offline", 1); s.status("online", 0) }, 4, "ONLINE ERROR OFFLINE ONLINE NO_MONITOR"},
		// The provider takes an error for an answer.
		{"an error", func() { s.status("error", 3) }, 4, "ONLINE ERROR OFFLINE ERROR NO_MONITOR"},
		{"none answers", func() { s.status("offline", 0, 1, 2, 3) }, 4, "ERROR ERROR OFFLINE ERROR NO_MONITOR"},
		// Of several in one transaction the provider takes one.
		{"all answer again", func() { s.status("online", 0, 1, 2, 3) }, 4, "ONLINE ONLINE OFFLINE ONLINE NO_MONITOR"},
		{"a port is removed, and with it the probe", func() {
			s.write(ovsdb.Delete(sb.ServiceMonitorTable, uuidOf(80)))
			c.commit(func(tx *northbound.Tx) error {
				ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(1), "ports")
				ls.Ports = toggled(ls.Ports, uuidOf(70))
				tx.Update(ls, "ports")
				return nil
			})
		}, 3, "ERROR ONLINE OFFLINE ONLINE NO_MONITOR"},
	} {
		step.change()
		var known probes
		s.wait("the probes", func() bool {
			known, _ = s.probes.now()
			return s.probes.Status().InSync && len(known) == step.statuses && maps.Equal(known, s.written())
		})
		c.reactTo(r, known)
		got := c.balancerRow(uuidOf(11)).ExternalIDs["neutron:member_status"]
		if want := statusOf(step.want); got != want {
			t.Errorf("%s: %s, want %s", step.what, got, want)
		}
		for _, uuid := range []string{uuidOf(12), uuidOf(13), uuidOf(14)} { // UDP, and the provider's
			want := statusOf("ONLINE ONLINE OFFLINE ONLINE NO_MONITOR")
			if uuid == uuidOf(12) && step.statuses == 3 { // the port is gone, whatever the protocol
				want = statusOf("ERROR ONLINE OFFLINE ONLINE NO_MONITOR")
			}
			if got := c.balancerRow(uuid).ExternalIDs["neutron:member_status"]; got != want {
				t.Errorf("%s: %s has %s, want %s", step.what, uuid, got, want)
			}
		}
	}
	// Nobody has a reactor look but the probe.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	s.status("offline", 1)
	s.wait("the state of a member", func() bool {
		return c.balancerRow(uuidOf(11)).ExternalIDs["neutron:member_status"] == statusOf("ERROR ERROR OFFLINE ONLINE NO_MONITOR")
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Members that do not answer stay in vips: OVN leaves them out by itself.
	want := map[string]string{"10.0.1.100:80": "10.0.1.1:80,10.0.1.11:80,10.0.1.13:80", "[fd00:1::10]:80": "[fd00:1::7]:80"}
	if got := c.balancerRow(uuidOf(11)).Vips; !maps.Equal(got, want) {
		t.Errorf("vips %v, want %v", got, want)
	}
}

// written are the statuses that the database has.
func (s southbound) written() probes {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	out := probes{}
	for n := range 4 {
		results, err := s.session.Transact(ctx, ovsdb.Select(sb.ServiceMonitorTable, []string{"ip", "port", "protocol", "logical_port", "status"}, ovsdb.Equal("_uuid", ovsdb.UUID(uuidOf(80+n)))))
		if err != nil {
			s.Fatal(err)
		}
		for _, row := range results[0].Rows {
			m := row.(*sb.ServiceMonitor)
			if of, ok := probedBy(m); ok && m.Status != nil {
				out[of] = *m.Status
			}
		}
	}
	return out
}

func statusOf(text string) string {
	var states rowform.States
	for i, word := range strings.Fields(text) {
		states.Set(fmt.Sprintf("m%d", i), word)
	}
	return states.String()
}
