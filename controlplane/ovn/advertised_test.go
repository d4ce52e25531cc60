package ovn

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// TestFollowerAdvertised: what OVN advertises of this node's routers, and of no
// other's, is followed from the moment on that the database has the table; a VM
// more does not lead to another discovery. The switches at the routers' ports are
// followed in Northbound, with the keys of the BGPVPN vocabulary alone.
func TestFollowerAdvertised(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.tenant(2, "public", "a2")
	l.nb("set", "Logical_Switch", "net-r1", `external_ids:neutron_bgpvpn\:vni=1001`, "external_ids:other=x")
	l.nb("set", "Logical_Switch", "net-r2", `external_ids:neutron_bgpvpn\:vni=1002`)
	w := l.follow(Config{Needs: Needs{Advertised: true, Hosts: func(r *Rows, i RouterInterface) bool { return r.Advertises(i.RouterPort) }},
		Northbound: l.remote("nb")})
	want := []string{"cr-gw-r1", "gw-r1", "in-r1", "ln-public", "sgw-r1", "sin-r1"}
	w.untilPorts("the start without the table", want...)
	w.until("the switch", func() (ok bool) {
		w.View(func(r *Rows) {
			p, _ := r.Port("sin-r1")
			s, found := r.Switch(p.Datapath)
			ok = found && len(s.ExternalIDs) == 1 && s.ExternalIDs["neutron_bgpvpn:vni"] == "1001" && len(r.switches) == 2
		})
		return ok
	})

	file := l.path("sb-25.03.ovsschema")
	if err := os.WriteFile(file, schema.Southbound, 0o600); err != nil {
		t.Fatal(err)
	}
	l.run("ovsdb-client", "convert", l.remote("sb"), file)
	for i, prefix := range []string{"10.10.0.5", "2001:db8:10::5", "10.10.0.0/24"} {
		for _, router := range []string{"r1", "r2"} {
			l.advertise(router, prefix)
		}
		w.until(prefix, func() bool { return len(w.advertised()) == i+1 })
	}
	w.untilPorts("the host behind it", append(want, "vm-r1")...)
	if got := w.advertised(); !slices.Equal(got, []string{"10.10.0.0/24 in-r1", "10.10.0.5 in-r1", "2001:db8:10::5 in-r1"}) {
		t.Errorf("advertised: %v", got)
	}
	w.mu.Lock()
	if !w.dirty["r1"] || w.dirty["r2"] {
		t.Errorf("dirty routers %v, want r1 alone", w.dirty)
	}
	w.mu.Unlock()
	l.run("ovsdb-client", "transact", l.remote("sb"), `["OVN_Southbound",{"op":"delete","table":"Advertised_Route","where":[]}]`)
	w.until("no route", func() bool { return len(w.advertised()) == 0 })
	w.untilPorts("no host", want...)
}

// advertise inserts a row as ovn-northd of OVN 25.03 writes it.
func (l *lab) advertise(router, prefix string) {
	l.t.Helper()
	row := func(column string) string {
		return l.sb("--bare", "--columns="+column, "find", "Port_Binding", "logical_port=in-"+router)
	}
	l.run("ovsdb-client", "transact", l.remote("sb"), fmt.Sprintf(
		`["OVN_Southbound",{"op":"insert","table":"Advertised_Route","row":{"datapath":["uuid","%s"],"logical_port":["uuid","%s"],"ip_prefix":"%s"}}]`,
		row("datapath"), row("_uuid"), prefix))
}

// advertised lists what is known of router r1.
func (w *watch) advertised() (out []string) {
	w.View(func(r *Rows) {
		p, _ := r.Port("in-r1")
		for _, a := range r.AdvertisedOn(p.Datapath) {
			port, _ := r.PortRow(a.LogicalPort)
			out = append(out, a.IPPrefix+" "+port.LogicalPort)
		}
		if len(out) != len(r.advertised) {
			out = append(out, fmt.Sprintf("%d rows in all", len(r.advertised)))
		}
	})
	return out
}

// TestAdvertisedRelates: the first row of a router port and its last one lead to
// another discovery, those between do not.
func TestAdvertisedRelates(t *testing.T) {
	rows := small()
	row := func(id, port string) Change {
		return Set(AdvertisedRoute{UUID: UUID(id), Datapath: "lr1", LogicalPort: UUID(port), IPPrefix: id})
	}
	for i, step := range []struct {
		change  Change
		relates bool
	}{
		{row("a", "in"), true}, {row("b", "in"), false}, {row("a", "in"), false}, {row("b", "other"), true},
		{Delete(TableAdvertisedRoute, "a"), true}, {row("c", "other"), false}, {Delete(TableAdvertisedRoute, "b"), false},
		{Delete(TableAdvertisedRoute, "c"), true}, {Delete(TableAdvertisedRoute, "c"), false},
	} {
		d := rows.Apply([]Change{step.change})
		if d.relations != step.relates || step.relates && len(d.Routers) != 1 {
			t.Errorf("step %d: relations %t, routers %v", i, d.relations, d.Routers)
		}
	}
	if len(rows.advertisedOn)+len(rows.advertisedBy) != 0 {
		t.Error("the indices are not empty")
	}
}
