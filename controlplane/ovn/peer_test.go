package ovn

import (
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Where a gateway port may move to is known before it moves, of the members of its
// group alone; what is published there reaches the routers with a port there.
func TestOtherMembersAreKnown(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.sb("chassis-add", "a3", "geneve", "192.0.2.3")
	publish := func(name, vtep string) {
		l.sb("create", "Chassis_Private", "name="+name, "chassis="+l.sb("--bare", "--columns=_uuid", "find", "Chassis", "name="+name),
			`external_ids:sluice-vtep="`+vtep+`"`, `external_ids:sluice-router-mac="02:00:00:00:00:22"`, "external_ids:foreign=kept")
	}
	publish("a2", "2001:db8::2")
	publish("a3", "192.0.2.3")
	l.tenant(1, "public", "a1", "a2")
	w := l.follow(Config{})
	at := func(name string) (found intent.FabricAddress, known bool) {
		w.View(func(r *Rows) {
			for id := range r.private {
				if n, a := r.ChassisAt(r.private[id].Chassis); n == name {
					found, known = a, true
				}
			}
		})
		return found, known
	}
	want := intent.FabricAddress{VTEP: netip.MustParseAddr("2001:db8::2"), RouterMAC: intent.MAC{2, 0, 0, 0, 0, 0x22}}
	w.until("a2's address", func() bool { a, _ := at("a2"); return a == want })
	if _, known := at("a3"); known {
		t.Error("the row of a chassis is followed to which nothing moves")
	}
	w.View(func(r *Rows) {
		if s := r.Siblings(); !slices.Equal(s, []netip.Addr{want.VTEP}) {
			t.Errorf("siblings %v", s)
		}
	})
	l.sb("lsp-unbind", "cr-gw-r1", "--", "lsp-bind", "cr-gw-r1", "a2")
	w.until("the move", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.dirty["r1"] })
	w.mu.Lock()
	clear(w.dirty)
	w.mu.Unlock()
	l.sb("set", "Chassis_Private", "a2", `external_ids:sluice-vtep="192.0.2.2"`)
	w.until("the router", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.dirty["r1"] })
	l.sb("set", "Chassis_Private", "a2", "external_ids:sluice-router-mac=no")
	w.until("a bad one is none", func() bool { a, known := at("a2"); return known && a == intent.FabricAddress{} })
	l.nb("lrp-set-gateway-chassis", "gw-r1", "a3", "5")
	w.until("another member", func() bool { _, known := at("a3"); return known })
	l.nb("lrp-del-gateway-chassis", "gw-r1", "a2")
	w.until("one less", func() bool { _, known := at("a2"); return !known })
}

// ovn-northd makes all members of a group anew when the priority of one changes: the
// gateway port that may come, and where the others are, are known all the time.
func TestMembersAreReplaced(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1", "a2")
	l.sb("lsp-unbind", "cr-gw-r1", "--", "lsp-bind", "cr-gw-r1", "a2")
	l.sb("create", "Chassis_Private", "name=a2", "chassis="+l.sb("--bare", "--columns=_uuid", "find", "Chassis", "name=a2"),
		"external_ids:sluice-vtep=192.0.2.2", `external_ids:sluice-router-mac="02:00:00:00:00:22"`)
	var watching atomic.Bool
	var gaps atomic.Int64
	known := func(r *Rows) bool {
		p, ok := r.Port("cr-gw-r1")
		return ok && len(r.GatewayPortsToCome(p.Datapath)) == 1 && len(r.Siblings()) == 1
	}
	w := l.follow(Config{Handle: func(e Event) {
		if watching.Load() && !known(e.Rows) {
			gaps.Add(1)
		}
	}})
	all := func() (ok bool) { w.View(func(r *Rows) { ok = known(r) }); return ok }
	w.until("the port that may come, and where it is", all)
	members := func() (out []UUID) {
		w.View(func(r *Rows) { out = slices.Sorted(maps.Keys(r.ha)) })
		return out
	}
	before := members()
	watching.Store(true)
	l.nb("lrp-set-gateway-chassis", "gw-r1", "a1", "15")
	w.until("the new members", func() bool {
		now := members()
		return len(now) == len(before) && !slices.Equal(now, before) && all()
	})
	if n := gaps.Load(); n > 0 {
		t.Errorf("%d events without the port or its place", n)
	}
	watching.Store(false)
	l.nb("lrp-del-gateway-chassis", "gw-r1", "a1")
	w.until("a group without this chassis", func() (gone bool) {
		w.View(func(r *Rows) { gone = len(r.haGroups) == 0 && len(r.ha) == 0 })
		return gone
	})
}
