package ovn

import (
	"slices"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// What the local database says of the node is told while no Southbound database can
// be reached, each time that it changes, and no more once there are events.
func TestFollowerTellsLocalFacts(t *testing.T) {
	l := newLab(t)
	remote := l.vs("get", "Open_vSwitch", ".", "external_ids:ovn-remote")
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote=tcp:[::1]:1", "external_ids:ovn-encap-ip=192.0.2.8")
	var mu sync.Mutex
	var told []string
	w := l.follow(Config{Local: func(r *Rows) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r.SystemID()+" "+r.External("ovn-encap-ip"))
	}})
	last := func(want string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(told) > 0 && told[len(told)-1] == want
		}
	}
	l.waitFor("the facts", last("a1 192.0.2.8"))
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.0.2.9")
	l.waitFor("other facts", last("a1 192.0.2.9"))
	events := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.seen
	}
	if n := events(); n != 0 {
		t.Errorf("%d events without a Southbound database", n)
	}
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote="+remote)
	l.waitFor("the first event", func() bool { return events() > 0 })
	mu.Lock()
	before := slices.Clone(told)
	mu.Unlock()
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.0.2.10")
	w.until("the change comes as an event", func() (ok bool) {
		w.View(func(r *Rows) { ok = r.External("ovn-encap-ip") == "192.0.2.10" })
		return ok
	})
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(told, before) {
		t.Errorf("told beside the events: %v", told[len(before):])
	}
}

// Another reader of the local database has each batch before the follower does, and goes on
// getting them, and writing, while the follower's handler is at work. Its rows are not the follower's.
func TestFollowerHandsOn(t *testing.T) {
	l := newLab(t)
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote=tcp:[::1]:1")
	var mu sync.Mutex
	ports := map[string]*vswitch.Interface{}
	handed := func(name string) *vswitch.Interface {
		mu.Lock()
		defer mu.Unlock()
		return ports[name]
	}
	began, goOn := make(chan bool), make(chan struct{})
	begin := sync.OnceFunc(func() {
		began <- handed("br-ex") != nil
		<-goOn
	})
	w := l.follow(Config{
		Local:         func(*Rows) { begin() },
		VSwitchTables: ovsdb.Tables{"Interface": {"name", "error", "external_ids"}},
		VSwitchHandler: func(b ovsdb.Batch) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range b.Changes {
				if i, ok := c.New.(*vswitch.Interface); ok {
					ports[i.Name] = i
				}
			}
		},
	})
	if first := <-began; !first {
		t.Error("the follower's handler is called before the other one has the rows")
	}
	l.vs("add-port", "br-ex", "eth1", "--", "set", "Interface", "eth1", "external_ids:iface-id=vm", "external_ids:other=x")
	l.waitFor("a port, meanwhile", func() bool { return handed("eth1") != nil })
	if ids := handed("eth1").ExternalIDs; len(ids) != 1 || ids["iface-id"] != "vm" {
		t.Errorf("keys of Interface.external_ids: %v", ids)
	}
	bad := "no such device"
	row := &vswitch.Interface{UUID: handed("eth1").UUID, Error: &bad}
	if _, err := w.Transact(t.Context(), ovsdb.Update(row, "error")); err != nil {
		t.Error(err)
	}
	l.waitFor("what was written, meanwhile", func() bool { i := handed("eth1"); return i.Error != nil && *i.Error == bad })
	close(goOn)
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.0.2.9")
	l.waitFor("all that the follower has", func() (ok bool) {
		w.View(func(r *Rows) { ok = r.External("ovn-encap-ip") == "192.0.2.9" })
		return ok
	})
	w.View(func(r *Rows) {
		if len(r.interfaces) != 0 {
			t.Errorf("the follower has %d Interfaces, and needs none", len(r.interfaces))
		}
	})
}
