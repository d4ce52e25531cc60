package tables

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Drivers are the actual sides of tables. A table that has none is empty, and stays so.
type Drivers map[any]any // by the address of an intent.Table

// Drive adds the driver of a table.
func Drive[K, V comparable](d Drivers, t *intent.Table[K, V], driver reconcile.Driver[K, V]) {
	d[t] = driver
}

func driverOf[K, V comparable](d Drivers, t *intent.Table[K, V]) reconcile.Driver[K, V] {
	if driver, there := d[t].(reconcile.Driver[K, V]); there {
		return driver
	}
	return reconcile.ReadOnly(reconcile.Unseen[K, V]{})
}

// entry is a table's place in the order of a group, without the types of its rows.
type entry[O owner] interface {
	Key() any // the address of an intent.Table
	Make(o O, d Drivers, opts Options) reconcile.Stage
	// Stage is where the table is in the pipeline's order.
	Stage(o O) reconcile.Stage
	Set(o O, all wanted.Set)
	Update(o O, d wanted.Difference)
	Settled(o O, p intent.Path) bool
	Source() source
	Waited(o O, w expected, before time.Time) reconcile.Wait
}

// owner has tables.
type owner interface {
	made(table any) reconcile.Stage
}

// source is what rows of a table are computed from.
type source uint8

const (
	fromOVN source = 1 << iota
	fromBGP
)

// table is the node's half of a table: what only the node may know of it.
type table[O owner, K, V comparable] struct {
	of *intent.Table[K, V]
	// from says what has to be complete before rows go.
	from source
	// paths are those whose change-over waits for the table.
	paths []intent.Path
	// options are those of the reconciliation, but for what becomes of failures, which are objects.
	options func(O, Options) reconcile.TableOptions[K, V]
	// apart: the rows come another way than in sets and differences of all tables.
	apart bool
	// onSet and onUpdate, when set, take the place of the table's own.
	onSet    func(O, map[K]V)
	onUpdate func(O, wanted.Delta[K, V])
	// excused, when set, tells which rows may wait for long without a word.
	excused func(expected) func(K, V) bool
}

func (t table[O, K, V]) Key() any { return t.of }

func (t table[O, K, V]) in(o O) *reconcile.Table[K, V] { return Of(o, t.of) }

func (t table[O, K, V]) Make(o O, d Drivers, opts Options) reconcile.Stage {
	options := t.options(o, opts)
	options.Observe = observe(opts.Status.Reporter(t.of.Name), t.of.Kind, options.Observe)
	return reconcile.NewTable(t.of.Name, driverOf(d, t.of), options)
}

func (t table[O, K, V]) Stage(o O) reconcile.Stage { return t.in(o) }

func (t table[O, K, V]) Set(o O, all wanted.Set) {
	rows := wanted.Rows(all, t.of)
	switch {
	case t.apart:
	case t.onSet != nil:
		t.onSet(o, rows)
	default:
		t.in(o).Set(rows)
	}
}

func (t table[O, K, V]) Update(o O, all wanted.Difference) {
	d := wanted.Of(all, t.of)
	switch {
	case d.Empty() || t.apart:
	case t.onUpdate != nil:
		t.onUpdate(o, d)
	default:
		t.in(o).Update(d.Set, d.Delete)
	}
}

func (t table[O, K, V]) Settled(o O, p intent.Path) bool {
	for _, path := range t.paths {
		if path == p {
			return t.in(o).Settled()
		}
	}
	return true
}

func (t table[O, K, V]) Source() source { return t.from }

func (t table[O, K, V]) Waited(o O, w expected, before time.Time) reconcile.Wait {
	if t.excused == nil {
		return t.in(o).WaitedLocked(before, nil)
	}
	return t.in(o).WaitedLocked(before, t.excused(w))
}

// early is the part of a table that is made before the tables behind it: of a reconciliation
// with the option Early.
type early[O owner, K, V comparable] struct{ table[O, K, V] }

func (e early[O, K, V]) Stage(o O) reconcile.Stage                         { return e.in(o).Early() }
func (early[O, K, V]) Set(O, wanted.Set)                                   {}
func (early[O, K, V]) Update(O, wanted.Difference)                         {}
func (early[O, K, V]) Settled(O, intent.Path) bool                         { return true }
func (early[O, K, V]) Waited(O, expected, time.Time) (none reconcile.Wait) { return none }

// group is tables in their order, and the pipeline that runs them.
type group[O owner] struct {
	// Pipeline makes them true. Set and Update are called inside its Update.
	Pipeline *reconcile.Pipeline
	order    []entry[O]
	stages   map[any]reconcile.Stage
}

func (g *group[O]) made(table any) reconcile.Stage { return g.stages[table] }

// begin makes the tables of o, which has the group in it.
func (g *group[O]) begin(o O, order []entry[O], d Drivers, opts Options, every time.Duration) {
	g.order, g.stages = order, map[any]reconcile.Stage{}
	for _, e := range order {
		if g.stages[e.Key()] == nil {
			g.stages[e.Key()] = e.Make(o, d, opts)
		}
	}
	stages := make([]reconcile.Stage, 0, len(order))
	for _, e := range order {
		stages = append(stages, e.Stage(o))
	}
	g.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, Passed: opts.Passed, RelistEvery: every}, stages...)
}

func (g *group[O]) setAll(o O, all wanted.Set) {
	for _, e := range g.order {
		e.Set(o, all)
	}
}

func (g *group[O]) updateAll(o O, d wanted.Difference) {
	for _, e := range g.order {
		e.Update(o, d)
	}
}

// sourceOf is what the rows of a stage's table are computed from.
func (g *group[O]) sourceOf(stage reconcile.Stage) source {
	for _, e := range g.order {
		if g.stages[e.Key()] == stage {
			return e.Source()
		}
	}
	return 0
}

// Of is a table of an owner, which has to have it.
func Of[K, V comparable](o owner, t *intent.Table[K, V]) *reconcile.Table[K, V] {
	return o.made(t).(*reconcile.Table[K, V])
}
