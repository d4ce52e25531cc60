package tapbalancing

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestAnyOrder: any sequence of row changes in any batching, with a step only when a batch
// touches a switch, or devices are others, leaves what one computation from the rows gives,
// whenever the databases are in sync; and the differences of the steps add up to it.
func TestAnyOrder(t *testing.T) {
	runs := 600
	if testing.Short() {
		runs = 100
	}
	seen := map[string]int{}
	for seed := range runs {
		tr := anyOrder(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for _, v := range tr.Balanced() {
			seen["VIP "+string(v.Choice.Path)]++
		}
		for _, m := range tr.VMs() {
			seen["VM "+m.Choice.Reason]++
		}
	}
	// A world in which nothing happens would prove nothing.
	for what, least := range map[string]int{"VIP ebpf": runs / 4, "VIP ovn": runs, "VM " + reason.PathAuto: runs / 8,
		"VM " + reason.ACLByDestination: runs / 10, "VM " + reason.ACLUnknown: runs / 20, "VM " + reason.TapConflict: runs / 60} {
		if seen[what] < least {
			t.Errorf("in %d worlds %d times %s", runs, seen[what], what)
		}
	}
	t.Log(seen)
}

func FuzzAnyOrder(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { anyOrder(t, rand.New(rand.NewPCG(seed, 2))) })
}

// course is a translator that is told one thing after the other, and what it has told.
type course struct {
	t     *testing.T
	world world
	cfg   Config
	tr    *Translator
	live  *ovn.Rows
	now   cloud
	sum   wanted.Set
}

func anyOrder(t *testing.T, r *rand.Rand) *Translator {
	w := newWorld(r)
	cfg := Config{TrustUnknown: r.IntN(4) == 0}
	c := course{t, w, cfg, NewTranslator(cfg, &loadbalancer.Book{}), w.store(), cloud{map[ovn.UUID]ovn.Row{}, nil}, wanted.NewSet()}
	for step := range 1 + r.IntN(30) {
		batch := w.changes(r.IntN(6), c.now.rows)
		if step == 0 {
			for _, row := range w.all() {
				batch = append(batch, ovn.Set(row))
			}
			r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			batch = batch[:len(batch)-r.IntN(4)] // some are still to come
		}
		for _, change := range batch {
			if delete(c.now.rows, change.UUID); change.New != nil {
				c.now.rows[change.UUID] = change.New
			}
		}
		looked := step == 0 || r.IntN(4) == 0
		if looked {
			c.now.devices = w.devices()
			c.tr.SetDevices(c.now.devices)
		}
		dirty := c.live.Apply(batch)
		if r.IntN(20) == 0 { // another server of Southbound
			c.live, dirty = w.load(c.now.rows), ovn.Dirty{All: true}
		}
		if len(dirty.Switches) > 0 || dirty.All || looked || c.tr.Stale() {
			c.step(dirty, ovn.InSync{SB: r.IntN(5) > 0, NB: r.IntN(5) > 0})
		}
		if !c.tr.Stale() {
			c.check()
		}
		if t.Failed() {
			t.Fatalf("step %d: %+v", step, batch)
		}
	}
	c.step(ovn.Dirty{}, synced)
	c.check()
	return c.tr
}

func (c *course) step(dirty ovn.Dirty, inSync ovn.InSync) {
	before, objects := c.tr.Complaints(), c.tr.Objects()
	d := c.tr.Step(c.live, dirty, inSync)
	c.sum.Apply(d)
	for id, o := range c.tr.outcomes {
		for k := range o.vips {
			if k.VNI != o.scope {
				c.t.Errorf("switch %s has VIP %s", id, k)
			}
		}
	}
	if diff := cmp.Diff(objects, c.tr.Objects()); diff != "" && c.tr.Complaints() == before {
		c.t.Errorf("nothing is said of changed objects (-before +after):\n%s", diff)
	}
}

// check compares with one computation from the rows as they are.
func (c *course) check() {
	fresh := NewTranslator(c.cfg, &loadbalancer.Book{})
	fresh.SetDevices(c.now.devices)
	fresh.Step(c.world.load(c.now.rows), ovn.Dirty{}, synced)
	for what, d := range map[string]wanted.Difference{"tables": wanted.Diff(fresh.Tables(), c.tr.Tables()), "sum of differences": wanted.Diff(c.tr.Tables(), c.sum)} {
		if !d.Empty() {
			c.t.Errorf("%s (from at once to step by step): %+v", what, d)
		}
	}
	for what, pair := range map[string][2]any{
		"VIPs": {fresh.Balanced(), c.tr.Balanced()}, "vms": {fresh.VMs(), c.tr.VMs()}, "objects": {fresh.Objects(), c.tr.Objects()},
	} {
		if reflect.DeepEqual(pair[0], pair[1]) {
			continue
		}
		if d := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{}, intent.VIPKey{}, intent.VIP{}, intent.TapClient{}, intent.Neighbor{}, intent.NeighborKey{})); d != "" {
			c.t.Errorf("%s (-at once +step by step):\n%s", what, d)
		}
	}
}
