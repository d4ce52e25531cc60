package tables

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// renewal is a VIP that is deleted and added again between two passes of the tables.
type renewal struct {
	key     intent.VIPKey
	journal *[]string
	rows    map[intent.VIPKey]intent.VIP
	change  func(wanted.Delta[intent.VIPKey, intent.VIP])
	pass    func()
}

func (r renewal) vip(backends ...int) intent.VIP {
	v := intent.VIP{Key: r.key, Slots: 1021}
	var list []intent.Backend
	for _, n := range backends {
		list = append(list, intent.Backend{Addr: families[0].backends[n], Port: 8080, Weight: 1})
		if !r.key.Addr.Is4() {
			list[len(list)-1].Addr = families[1].backends[n]
		}
	}
	v.Backends = intent.NewBackendSet(list...)
	return v
}

func (r renewal) set(v intent.VIP) {
	r.change(wanted.Delta[intent.VIPKey, intent.VIP]{Set: map[intent.VIPKey]intent.VIP{r.key: v}})
}

// check deletes the VIP and adds it again, and tells what became of its row.
func (r renewal) check(t *testing.T, when string, v intent.VIP, want ...string) {
	t.Helper()
	*r.journal = nil
	r.change(wanted.Delta[intent.VIPKey, intent.VIP]{Delete: []intent.VIPKey{r.key}})
	r.set(v)
	r.pass()
	got := slices.DeleteFunc(slices.Clone(*r.journal), func(s string) bool { return s != "+vip" && s != "-vip" })
	if !slices.Equal(got, want) || r.rows[r.key] != v {
		t.Errorf("%s: the driver was told %v, want %v; the row is %+v", when, got, want, r.rows[r.key])
	}
}

// The row of a VIP that OVN has deleted is removed, with its sessions, also where the VIP is there
// again before a pass has seen that: with other backends or with the same. What is kept although it
// is not wanted says nothing of OVN, and stays.
func TestVIPAddedAgain(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		one := service{port: 80, backends: []int{0}}
		b.serve(t, one)
		b.serve(t, one) // the ways to all backends are there
		r := renewal{b.vip(one).Key, &b.journal, b.vips.rows, func(d wanted.Delta[intent.VIPKey, intent.VIP]) {
			b.Pipeline.Update(func() { b.UpdateVIPs(d.Set, d.Delete) })
		}, func() { b.passes(t) }}
		r.check(t, "the same", b.vip(one), "-vip", "+vip")
		r.check(t, "OVN's", b.vip(one).ByOVN(), "-vip", "+vip")
		r.check(t, "eBPF's", b.vip(one), "-vip", "+vip")
		if !b.isAnnounced() {
			t.Error("the address is not announced")
		}
		b.ovn = false
		r.check(t, "out of sync", b.vip(one).ByOVN(), "+vip")
		b.ovn = true
		r.check(t, "in sync again", b.vip(one), "-vip", "+vip")
		if len(b.renewed) > 0 {
			t.Errorf("it keeps %v", b.renewed)
		}
	})
}

// So it is on taps; but a VM that leaves takes its switch's VIPs along for a moment only.
func TestVIPOfVMsAddedAgain(t *testing.T) {
	for i, f := range families {
		t.Run(fmt.Sprint(f.vip), func(t *testing.T) {
			scope := intent.Switch(uint32(7 + i))
			var journal []string
			vips := newDriver[intent.VIPKey, intent.VIP]("vip", &journal)
			inSync := true
			c := NewClients(driversOf(func(d Drivers) {
				Drive(d, intent.ClientVIPs, vips)
				Drive(d, intent.ClientNeighbors, newDriver[intent.NeighborKey, intent.Neighbor]("neighbor", &journal))
				Drive(d, intent.TapClients, newDriver[intent.TapClientKey, intent.TapClient]("client", &journal))
			}), func() bool { return inSync }, Options{Status: status.NewRegistry(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
			c.leaving.now, c.leaving.wake = func() time.Time { return time.Unix(1000, 0) }, func(time.Duration) {}
			k := intent.TapClientKey{IfIndex: 3}
			vm := map[intent.TapClientKey]intent.TapClient{k: {Key: k, Scope: scope}}
			neighbors := map[intent.NeighborKey]intent.Neighbor{}
			for _, a := range append([]netip.Addr{f.vip}, f.backends[:]...) {
				n := intent.NeighborKey{Scope: scope, Addr: a}
				neighbors[n] = intent.Neighbor{Key: n, MAC: intent.MAC{2}}
			}
			leaves := false
			r := renewal{intent.VIPKey{VNI: scope, Protocol: intent.UDP, Addr: f.vip, Port: 53}, &journal, vips.rows, func(d wanted.Delta[intent.VIPKey, intent.VIP]) {
				diff := wanted.With(wanted.Difference{}, intent.ClientVIPs, d)
				diff = wanted.With(diff, intent.ClientNeighbors, wanted.Delta[intent.NeighborKey, intent.Neighbor]{Set: neighbors})
				machines := wanted.Delta[intent.TapClientKey, intent.TapClient]{Set: vm}
				if leaves && len(d.Delete) > 0 {
					machines = wanted.Delta[intent.TapClientKey, intent.TapClient]{Delete: []intent.TapClientKey{k}}
				}
				c.Pipeline.Update(func() { c.Update(wanted.With(diff, intent.TapClients, machines)) })
			}, func() {
				for range 4 {
					c.Pipeline.Pass(t.Context())
				}
			}}
			c.Pipeline.Update(func() { c.Set(wanted.NewSet()) })
			r.set(r.vip(0))
			r.pass()
			r.check(t, "with another backend", r.vip(1), "-vip", "+vip")
			r.check(t, "the same", r.vip(1), "-vip", "+vip")
			inSync = false
			r.check(t, "out of sync", r.vip(0), "+vip")
			inSync, leaves = true, true
			r.check(t, "the only VM leaves", r.vip(1), "+vip")
			if len(c.renewed) > 0 {
				t.Errorf("it keeps %v", c.renewed)
			}
		})
	}
}

// The row of the VIP that was added again is written without another change.
func TestVIPAddedAgainIsWritten(t *testing.T) {
	key := intent.VIPKey{VNI: intent.Switch(7), Protocol: intent.UDP, Addr: netip.MustParseAddr("fd00::9"), Port: 53}
	var journal []string
	vips, written := newDriver[intent.VIPKey, intent.VIP]("vip", &journal), make(chan string, 8)
	vips.after = func() { written <- journal[len(journal)-1] }
	c := NewClients(driversOf(func(d Drivers) { Drive(d, intent.ClientVIPs, vips) }), func() bool { return true },
		Options{Status: status.NewRegistry(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Pipeline.Run(ctx) }()
	defer func() { end(); <-done }()
	change := func(d wanted.Delta[intent.VIPKey, intent.VIP]) {
		c.Update(wanted.With(wanted.Difference{}, intent.ClientVIPs, d))
	}
	add := func() {
		change(wanted.Delta[intent.VIPKey, intent.VIP]{Set: map[intent.VIPKey]intent.VIP{key: {Key: key, OVN: true}}})
	}
	see := func(want string) {
		t.Helper()
		select {
		case got := <-written:
			if got != want {
				t.Fatalf("the driver was told %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the driver was not told %s", want)
		}
	}
	c.Pipeline.Update(func() { c.Set(wanted.NewSet()); add() })
	see("+vip")
	c.Pipeline.Update(func() {
		change(wanted.Delta[intent.VIPKey, intent.VIP]{Delete: []intent.VIPKey{key}})
		add()
	})
	see("-vip")
	see("+vip")
}
