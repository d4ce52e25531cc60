package tables

import (
	"errors"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// reaches is see while rows are held that are not wanted.
func (b *balanced) reaches(t *testing.T, when string, want ...int) {
	t.Helper()
	if got := b.reached(t); !slices.Equal(got, want) {
		t.Errorf("%s: ways to the backends %v, want %v", when, got, want)
	}
}

// While OVN is out of sync no VIP is taken away, nor the ways to its backends and back, be it by
// the process that made them or by one after it; what has changed is written all the same. When OVN
// is back what it does not have goes.
func TestVIPsWaitForOVN(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		one, two := service{port: 80, backends: []int{0}, flush: true}, service{port: 81, backends: []int{1}, flush: true}
		there := func(when string, want ...service) {
			t.Helper()
			if len(b.vips.rows) != len(want) {
				t.Errorf("%s: VIPs %v", when, b.vips.rows)
			}
			for _, s := range want {
				if v := b.vip(s); b.vips.rows[v.Key] != v {
					t.Errorf("%s: VIP %+v, want %+v", when, b.vips.rows[v.Key], v)
				}
			}
		}
		b.serve(t, one, two)
		there("at first", one, two)
		b.ovn = false
		for _, why := range []string{b.Held(Of(b, intent.VIPs)), b.Held(Of(b, intent.BackendRoutes)), b.Held(Of(b, intent.SteeringFlows))} {
			if why == "" {
				t.Error("nothing says that rows are held")
			}
		}
		b.serve(t)
		there("nothing is wanted", one, two)
		b.reaches(t, "nothing is wanted", 0, 1)
		b.restart()
		b.ovn = false
		b.serve(t)
		there("started again", one, two)
		b.reaches(t, "started again", 0, 1)
		changed := service{port: 80, backends: []int{0, 2}, flush: true}
		b.serve(t, changed)
		there("one has changed", changed, two)
		b.reaches(t, "one has changed", 0, 1, 2)
		b.ovn = true
		b.serve(t, changed)
		there("OVN is back", changed)
		b.later(intent.FlowIdle)
		b.passes(t)
		b.reaches(t, "OVN is back", 0, 2)
		b.serve(t)
		there("OVN has none")
	})
}

// VIPs of a gateway port that has gone to another node, with their ways, stay for as long as
// packets may come here.
func TestVIPsStayForAMove(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.moves.now = b.ways.to.now
		b.serve(t, service{port: 80, backends: []int{0}, flush: true})
		all, _ := Of(b, intent.Announcements).Rows()
		b.Pipeline.Update(func() { b.Moved(all) })
		b.serve(t)
		b.want(false)
		b.passes(t)
		if len(b.vips.rows) != 1 {
			t.Errorf("VIPs %v", b.vips.rows)
		}
		b.reaches(t, "the port has gone", 0)
		b.later(MoveTime)
		b.passes(t)
		if len(b.vips.rows) > 0 {
			t.Errorf("after the move: VIPs %v", b.vips.rows)
		}
		b.reaches(t, "after the move")
	})
}

// A VIP that cannot be written is an object of its own, and the others are written.
func TestVIPThatFails(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		one, two := b.vip(service{port: 80, backends: []int{0}}).Key, service{port: 81, backends: []int{1}}
		b.vips.fail, b.vips.failKey = errors.New("the map is full"), one
		b.serve(t, service{port: 80, backends: []int{0}}, two)
		if o, ok := b.reg.Get("vips", "vip", one.String()); !ok || o.State != status.Error {
			t.Errorf("status %+v (%t)", o, ok)
		}
		if _, ok := b.vips.rows[b.vip(two).Key]; !ok || len(b.vips.rows) != 1 {
			t.Errorf("VIPs %v", b.vips.rows)
		}
		b.vips.fail, b.vips.failKey = nil, intent.VIPKey{}
		b.Pipeline.Update(func() { Of(b, intent.VIPs).Touch(one) })
		b.passes(t)
		if _, ok := b.reg.Get("vips", "vip", one.String()); ok || len(b.vips.rows) != 2 {
			t.Errorf("mended: an error is shown %t; VIPs %v", ok, b.vips.rows)
		}
	})
}
