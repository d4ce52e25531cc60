package ovn

import (
	"slices"
	"sync"
	"testing"
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
