package steering

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func guestAt(last byte, addrs ...string) (out []intent.PortAddress) {
	mac := intent.MAC{0xfa, 0x16, 0x3e, 0, 0, last}
	for _, a := range addrs {
		addr := netip.Addr{}
		if a != "" {
			addr = netip.MustParseAddr(a)
		}
		out = append(out, intent.PortAddress{MAC: mac, Addr: addr})
	}
	return out
}

func port(name string, tap intent.Tap, guests ...intent.PortAddress) intent.MetadataPort {
	return intent.MetadataPort{
		Port: name, Network: "net", Instance: "i-" + name, Project: "project", Tap: tap,
		Addresses: intent.NewPortAddressSet(guests...), Answer: intent.MAC{0xfa, 0x16, 0x3e, 0xff, 0, 1},
	}
}

func tableOf(all ...intent.MetadataPort) table {
	out := table{}
	for _, v := range all {
		out[v.Port] = v
	}
	return out
}

func with(v intent.MetadataPort, change func(*intent.MetadataPort)) intent.MetadataPort {
	change(&v)
	return v
}

// numbers are those that the maps have of a device, by guest.
func (w *world) numbersOn(ifindex uint32) map[guest]uint32 {
	out := map[guest]uint32{}
	for n, s := range w.numbers {
		if s.IfIndex == ifindex {
			out[guest{s.MAC, s.Addr}] = n
		}
	}
	return out
}

func TestNumbers(t *testing.T) {
	w := newWorld(t)
	a, b := w.tap("tapA", 101), w.tap("tapB", 102)
	d := w.start()
	first := port("a", a, slices.Concat(guestAt(5, "10.0.0.5", "10.0.0.6", "2001:db8::5"), guestAt(6, ""))...)
	unknown := with(first, func(v *intent.MetadataPort) { v.Instance, v.Project = "", "" })
	twin := port("b", b, guestAt(5, "10.0.0.5")...)
	w.converge(d, tableOf(unknown, twin))
	was, twins := w.numbersOn(101), w.numbersOn(102)
	if len(was) != 4 || len(twins) != 2 {
		t.Fatalf("numbers: %v, %v", was, twins)
	}
	same := func(what string, want table, but ...guest) {
		t.Helper()
		w.converge(d, want)
		is := w.numbersOn(101)
		for g, n := range is {
			if old, ok := was[g]; ok && (old == n) == slices.Contains(but, g) {
				t.Errorf("%s: %v had the number %d, and has %d", what, g, old, n)
			}
		}
		was = is
		if !maps.Equal(w.numbersOn(102), twins) {
			t.Errorf("%s: the other port's numbers changed", what)
		}
	}
	all := func() []guest { return slices.Collect(maps.Keys(was)) }
	same("the instance becomes known", tableOf(first, twin))
	same("the answer", tableOf(with(first, func(v *intent.MetadataPort) { v.Answer[5] = 9 }), twin))
	more := with(first, func(v *intent.MetadataPort) {
		v.Addresses = intent.NewPortAddressSet(append(v.Addresses.All(), guestAt(5, "10.0.0.7")...)...)
	})
	same("one more address", tableOf(more, twin))
	same("one less", tableOf(first, twin))
	same("a new process", tableOf(first, twin))
	d = w.start()
	same("after a restart", tableOf(first, twin))
	same("another instance", tableOf(with(first, func(v *intent.MetadataPort) { v.Instance = "other" }), twin), all()...)
	same("another VLAN", tableOf(with(first, func(v *intent.MetadataPort) { v.Instance, v.Tap.VLAN = "other", 7 }), twin), all()...)
	same("its project", tableOf(with(first, func(v *intent.MetadataPort) { v.Project = "another" }), twin), all()...)
	w.converge(d, tableOf(twin))
	if len(w.numbersOn(101)) != 0 {
		t.Error("a port that went has numbers")
	}
	w.converge(d, table{})
}

// Numbers that were given back rest: two addresses change for one another, and none gets
// one that the other had.
func TestNumbersRest(t *testing.T) {
	w := newWorld(t)
	tap := w.tap("tapA", 101)
	d := w.start()
	seen := map[uint32]time.Time{}
	for i := range 20 {
		v := with(port("a", tap, guestAt(5, "10.0.0.5")...), func(v *intent.MetadataPort) { v.Instance = string(rune('a' + i)) })
		clear(w.meant)
		w.converge(d, tableOf(v))
		for _, n := range w.numbersOn(101) {
			if at, ok := seen[n]; ok && w.now.Sub(at) < identity.RestTime {
				t.Errorf("the number %d comes again after %s", n, w.now.Sub(at))
			}
			seen[n] = w.now
		}
		w.now = w.now.Add(10 * time.Second)
		if i%5 == 4 {
			d = w.start()
		}
	}
}

// What has no tap is in the file alone, as a member of its network; what has one is none.
func TestNamespaced(t *testing.T) {
	w := newWorld(t)
	d := w.start()
	want := tableOf(port("steered", w.tap("tapA", 101), guestAt(5, "10.0.0.5")...), port("sriov", intent.Tap{}, guestAt(6, "10.0.0.6", "2001:db8::6")...))
	w.converge(d, want)
	file, err := identity.Read(w.file)
	if err != nil {
		t.Fatal(err)
	}
	nets := file.Networks()
	if len(nets) != 1 || nets[0].Name != "net" || nets[0].Namespace != "ovnmeta-net" || nets[0].Device == "" || !nets[0].IPv6 || len(nets[0].Members) != 1 {
		t.Errorf("networks: %+v", nets)
	}
	if p, _, ok := file.FindOn("net", netip.MustParseAddr("10.0.0.6")); !ok || p.Instance != "i-sriov" {
		t.Errorf("found %+v", p)
	}
	if len(file.Ports()) != 1 {
		t.Errorf("ports: %+v", file.Ports())
	}
	if p, _, ok := file.FindOn("net", netip.MustParseAddr("10.0.0.5")); ok {
		t.Errorf("what the tap's port has is found in the namespace: %+v", p)
	}
	// Its tap comes, and goes.
	tap := w.tap("tapS", 103)
	w.converge(d, tableOf(want["steered"], with(want["sriov"], func(v *intent.MetadataPort) { v.Tap = tap })))
	if file, _ := identity.Read(w.file); len(file.Networks()) != 0 {
		t.Errorf("networks: %+v", file.Networks())
	}
	w.converge(w.start(), want)
	w.converge(w.start(), table{})
	if errs := d.Apply(t.Context(), []reconcile.Row[string, intent.MetadataPort]{{Key: "x", Value: with(port("x", intent.Tap{}), func(v *intent.MetadataPort) { v.Network = "a/b" })}}); len(errs) != 1 || errs[0] == nil {
		t.Errorf("a network that can have no namespace: %v", errs)
	}
}

// A tap that is not there is waited for, and has no rows: its index may be another's next.
func TestTapGoes(t *testing.T) {
	w := newWorld(t)
	d := w.start()
	v := port("a", intent.Tap{Name: "tapA", IfIndex: 101}, guestAt(5, "10.0.0.5")...)
	if _, err := w.pass(d, tableOf(v)); !errors.Is(err, reconcile.ErrNotReady) {
		t.Fatalf("before the tap: %v", err)
	}
	w.tap("tapA", 101)
	w.converge(d, tableOf(v))
	w.untap("tapA")
	if is, err := d.List(t.Context()); err != nil || is["a"] != (intent.MetadataPort{}) {
		t.Errorf("listed %+v, %v", is, err)
	}
	w.steps = 0
	if _, err := w.pass(d, tableOf(v)); !errors.Is(err, errCut) || errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("rows that cannot be removed count as waiting: %v", err)
	}
	w.steps = -1
	if _, err := w.pass(d, tableOf(v)); !errors.Is(err, reconcile.ErrNotReady) {
		t.Fatalf("without the tap: %v", err)
	}
	if len(w.numbers)+len(w.forward) != 0 {
		t.Errorf("rows of a tap that has gone: %v", w.numbers)
	}
	again := with(v, func(v *intent.MetadataPort) { v.Tap = w.tap("tapA", 102) })
	w.converge(d, tableOf(again))
}

// Another VM's tap gets the index of one that went, and the order in which ports
// are told is the worst.
func TestIndexComesAgain(t *testing.T) {
	for name, restart := range map[string]bool{"running": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.start()
			old := port("old", w.tap("tapA", 101), slices.Concat(guestAt(5, "10.0.0.5", "10.0.0.6"))...)
			w.converge(d, tableOf(old))
			w.untap("tapA")
			w.tap("tapB", 101)
			if restart {
				d = w.start()
			}
			fresh := port("fresh", intent.Tap{Name: "tapB", IfIndex: 101}, guestAt(5, "10.0.0.5")...)
			if !restart {
				// No List in between.
				if errs := d.Apply(t.Context(), []reconcile.Row[string, intent.MetadataPort]{{Key: "fresh", Value: fresh}}); errs != nil {
					t.Fatal(errs)
				}
				if len(w.numbersOn(101)) != 2 {
					t.Errorf("numbers: %v", w.numbersOn(101))
				}
			}
			w.converge(d, tableOf(fresh))
		})
	}
}

// A trunk's ports have one tap; the program goes with the last.
func TestTrunk(t *testing.T) {
	w := newWorld(t)
	d := w.start()
	tap := w.tap("tapA", 101)
	parent, sub := port("parent", tap, guestAt(5, "10.0.0.5")...), port("sub", intent.Tap{Name: "tapA", IfIndex: 101, VLAN: 7}, guestAt(5, "10.0.0.5")...)
	w.converge(d, tableOf(parent, sub))
	w.converge(d, tableOf(sub))
	w.converge(d, tableOf(parent, sub))
	if errs := d.Delete(t.Context(), []string{"parent", "sub"}); errs != nil || len(w.on) != 0 {
		t.Errorf("removed: %v, programs on %v", errs, w.on)
	}
	w.converge(d, table{})
}

// One port takes the place of another on a tap.
func TestPortsChangePlaces(t *testing.T) {
	w := newWorld(t)
	d := w.start()
	a, b := w.tap("tapA", 101), w.tap("tapB", 102)
	w.converge(d, tableOf(port("one", a, guestAt(5, "10.0.0.5")...), port("two", b, guestAt(6, "10.0.0.6")...)))
	w.converge(d, tableOf(port("one", b, guestAt(6, "10.0.0.6")...), port("two", a, guestAt(5, "10.0.0.5")...)))
	w.converge(d, tableOf(port("three", a, guestAt(5, "10.0.0.5")...)))
}

// Whatever is wrong with maps, programs or file is seen and mended.
func TestDamage(t *testing.T) {
	anyNumber := func(w *world) uint32 { return slices.Min(slices.Collect(maps.Keys(w.numbers))) }
	for name, damage := range map[string]func(w *world){
		"a way back is missing":  func(w *world) { delete(w.numbers, anyNumber(w)) },
		"a way there is missing": func(w *world) { delete(w.forward, place(w.numbers[anyNumber(w)])) },
		"a way there leads away": func(w *world) { s := w.numbers[anyNumber(w)]; s.Number = 77; w.forward[place(s)] = s },
		"all ways are missing":   func(w *world) { clear(w.numbers); clear(w.forward) },
		"a program is missing":   func(w *world) { delete(w.on, 101) },
		"another answer": func(w *world) {
			n := anyNumber(w)
			s := w.numbers[n]
			s.Answer[5]++
			w.numbers[n] = s
			w.forward[place(s)] = s
		},
		"a number of another guest": func(w *world) {
			n := anyNumber(w)
			s := w.numbers[n]
			s.MAC[5] = 99
			w.numbers[n] = s
			w.forward[place(s)] = s
		},
		"a number on another tap": func(w *world) {
			n := anyNumber(w)
			s := w.numbers[n]
			s.IfIndex = 102
			w.numbers[n] = s
			w.forward[place(s)] = s
		},
		"somebody nobody knows": func(w *world) {
			s := taps.Source{IfIndex: 103, MAC: intent.MAC{2}, Number: 4711, Answer: intent.MAC{4}}
			w.numbers[4711], w.forward[place(s)] = s, s
		},
		"a program on a tap of nobody": func(w *world) { w.on[103] = true },
		"no file":                      func(w *world) { _ = os.Remove(w.file) },
		"a file that cannot be read":   func(w *world) { _ = os.WriteFile(w.file, []byte("{"), 0o600) },
		"a file that says nothing":     func(w *world) { table, _ := identity.NewTable(nil, nil); _ = identity.Write(w.file, table) },
		"a file of another form": func(w *world) {
			table, _ := identity.Read(w.file)
			ports := table.Ports()
			ports[0].Row = nil
			table, _ = identity.NewTable(ports, nil)
			_ = identity.Write(w.file, table)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restart := range []bool{false, true} {
				w := newWorld(t)
				d := w.start()
				a, b := w.tap("tapA", 101), w.tap("tapB", 102)
				w.tap("tapC", 103)
				want := tableOf(port("a", a, guestAt(5, "10.0.0.5", "10.0.0.6")...), port("b", b, guestAt(5, "10.0.0.5")...))
				w.converge(d, want)
				damage(w)
				clear(w.meant)
				if restart {
					d = w.start()
				}
				if is, err := d.List(t.Context()); err != nil || cmp.Equal(table(is), want) {
					t.Errorf("not seen: %+v, %v", is, err)
				}
				w.converge(d, want)
				host(t, "ip netns del "+w.ns)
			}
		})
	}
}

// A change of a tap that a row names is told.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	d := w.start()
	v := port("a", intent.Tap{Name: "tapA", IfIndex: 101}, guestAt(5, "10.0.0.5")...)
	_ = d.Apply(t.Context(), []reconcile.Row[string, intent.MetadataPort]{{Key: "a", Value: v}})
	var told atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Watch(ctx, func() { told.Add(1) }) }()
	defer func() { cancel(); <-done }()
	wait := func(what string, change func()) {
		t.Helper()
		was := told.Load()
		for end := time.Now().Add(20 * time.Second); told.Load() == was; time.Sleep(50 * time.Millisecond) {
			change()
			if time.Now().After(end) {
				t.Fatalf("not told: %s", what)
			}
		}
	}
	for end := time.Now().Add(20 * time.Second); told.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not told at first")
		}
	}
	wait("a tap that comes", func() {
		_ = try("ip -n " + w.ns + " link del tapA")
		_ = try("ip -n " + w.ns + " link add tapA index 101 type veth peer name m")
	})
	time.Sleep(200 * time.Millisecond)
	wait("one that goes", func() { _ = try("ip -n " + w.ns + " link del tapA") })
}

func try(script string) error { return exec.Command("sh", "-c", script).Run() }
