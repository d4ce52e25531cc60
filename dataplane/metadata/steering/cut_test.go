package steering

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Wherever a process ends, the next one comes to the same end, and what is promised of
// order and numbers holds all the time.
func TestCuts(t *testing.T) {
	a, b := intent.Tap{Name: "tapA", IfIndex: 101}, intent.Tap{Name: "tapB", IfIndex: 102}
	one := port("one", a, guestAt(5, "10.0.0.5", "10.0.0.6")...)
	two := port("two", b, guestAt(5, "10.0.0.5")...)
	for name, tc := range map[string]struct {
		from, to table
		// between changes devices.
		between string
	}{
		"add":              {table{}, tableOf(one, two), ""},
		"remove":           {tableOf(one, two), tableOf(two), ""},
		"remove all":       {tableOf(one, two), table{}, ""},
		"another instance": {tableOf(one, two), tableOf(with(one, func(v *intent.MetadataPort) { v.Instance = "new" }), two), ""},
		"known instance":   {tableOf(with(one, func(v *intent.MetadataPort) { v.Instance = "" }), two), tableOf(one, two), ""},
		"another answer":   {tableOf(one, two), tableOf(with(one, func(v *intent.MetadataPort) { v.Answer[5] = 9 }), two), ""},
		"addresses": {tableOf(one, two), tableOf(with(one, func(v *intent.MetadataPort) {
			v.Addresses = intent.NewPortAddressSet(guestAt(5, "10.0.0.6", "10.0.0.7")...)
		}), two), ""},
		"taps change":     {tableOf(one, two), tableOf(with(one, func(v *intent.MetadataPort) { v.Tap = b }), with(two, func(v *intent.MetadataPort) { v.Tap = a })), ""},
		"no tap any more": {tableOf(one, two), tableOf(with(one, func(v *intent.MetadataPort) { v.Tap = intent.Tap{} }), two), ""},
		"port for port":   {tableOf(one, two), tableOf(two, with(one, func(v *intent.MetadataPort) { v.Port, v.Instance = "three", "i-three" })), ""},
		"index again": {tableOf(one, two), tableOf(two, with(one, func(v *intent.MetadataPort) { v.Port, v.Instance, v.Tap.Name = "three", "i-three", "tapC" })),
			"ip -n NS link del tapA; ip -n NS link add tapC index 101 type veth peer name x"},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := 0; ; cut++ {
				if !cutAfter(t, cut, tc.from, tc.to, tc.between) {
					t.Logf("%d steps", cut)
					break
				}
			}
		})
	}
}

// cutAfter tells whether there were as many steps.
func cutAfter(t *testing.T, steps int, from, to table, between string) bool {
	w := newWorld(t)
	defer host(t, "ip netns del "+w.ns)
	w.tap("tapA", 101)
	w.tap("tapB", 102)
	d := w.start()
	w.converge(d, from)
	if between != "" {
		host(t, strings.ReplaceAll(between, "NS", w.ns))
	}
	w.steps, w.took = steps, 0
	_, err := w.pass(d, to)
	w.steps = -1
	w.now = w.now.Add(time.Second)
	w.converge(w.start(), to)
	if t.Failed() {
		t.Fatalf("cut after %d steps", steps)
	}
	return err != nil
}

// Any changes, cut anywhere, with devices that come and go, end in what is wanted.
func TestAnything(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			devices := []intent.Tap{w.tap("tapA", 101), w.tap("tapB", 102), w.tap("tapC", 103)}
			d := w.start()
			for range 12 {
				want := table{}
				free := slices.Clone(devices)
				r.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
				for i := range r.IntN(4) {
					name := string(rune('p' + r.IntN(4)))
					v := port(name, free[i%3], guestAt(byte(5+r.IntN(2)), []string{"10.0.0.5", "10.0.0.6", ""}[:1+r.IntN(3)]...)...)
					v.Instance = []string{"", "i-" + name, "j-" + name}[r.IntN(3)]
					if r.IntN(5) == 0 {
						v.Tap = intent.Tap{}
					}
					if _, twice := want[name]; !twice {
						want[name] = v
					}
				}
				if r.IntN(3) == 0 {
					w.steps = r.IntN(15)
				}
				_, err := w.pass(d, want)
				w.steps = -1
				if err != nil {
					d = w.start()
				}
				w.now = w.now.Add(time.Duration(r.IntN(60)) * time.Second)
				if r.IntN(2) == 0 {
					w.converge(d, want)
				}
				if t.Failed() {
					t.FailNow()
				}
			}
			w.converge(d, table{})
		})
	}
}
