package tables

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// A table of its own, as one that is new would be: its variable, its entry, its place in the order.
var names = &intent.Table[string, string]{Name: "names", Kind: "name", Key: func(v string) string { return v[:1] }}

type register struct{ group[*register] }

var nameEntry = table[*register, string, string]{of: names, options: func(*register, Options) reconcile.TableOptions[string, string] {
	return reconcile.TableOptions[string, string]{}
}}

func newRegister(reg *status.Registry, dry bool, driver reconcile.Driver[string, string]) *register {
	r, d := &register{}, Drivers{}
	Drive(d, names, driver)
	r.begin(r, []entry[*register]{nameEntry}, d, Options{Status: reg, Log: slog.New(slog.DiscardHandler), Dry: dry}, 0)
	return r
}

// A table that nothing names but its own declaration is wanted, patched, compared in a dry run,
// reported in the status with its failures, and part of a diff.
func TestNewTable(t *testing.T) {
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	var journal []string
	driver := newDriver[string, string]("name", &journal)
	r := newRegister(reg, false, driver)
	all := wanted.NewSet()
	wanted.Put(all, names, "alice")
	wanted.Put(all, names, "bob")
	r.Pipeline.Update(func() { r.setAll(r, all) })
	r.Pipeline.Pass(t.Context())
	if !maps.Equal(driver.rows, map[string]string{"a": "alice", "b": "bob"}) {
		t.Fatalf("wanted: %v", driver.rows)
	}

	next := all.Pack().Set()
	delete(wanted.Edit(next, names), "b")
	wanted.Put(next, names, "anna")
	step := wanted.Diff(all, next)
	r.Pipeline.Update(func() { r.updateAll(r, step) })
	diff, err := r.Pipeline.Compare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var changes []status.Change
	for _, c := range diff {
		changes = append(changes, ChangeOf(c))
	}
	want := []status.Change{{Table: "names", Key: "a", Action: "change", Wanted: "anna", Actual: "alice"}, {Table: "names", Key: "b", Action: "delete", Actual: "bob"}}
	if !slices.Equal(changes, want) {
		t.Errorf("diff %+v", changes)
	}
	r.Pipeline.Pass(t.Context())
	if !maps.Equal(driver.rows, map[string]string{"a": "anna"}) {
		t.Errorf("patched: %v", driver.rows)
	}

	dry := newRegister(reg, true, driver)
	dry.Pipeline.Update(func() { dry.setAll(dry, all) })
	dry.Pipeline.Pass(t.Context())
	plan, err := dry.Pipeline.Compare(t.Context())
	if err != nil || len(plan) != 2 || driver.rows["a"] != "anna" {
		t.Errorf("dry run: %v %+v, rows %v", err, plan, driver.rows)
	}

	driver.failWith(errors.New("a fault"))
	r.Pipeline.Update(func() { r.setAll(r, all) })
	r.Pipeline.Pass(t.Context())
	if s := (Held{Stage: r.Pipeline.Stages()[0]}).Status(); s.Name != "names" || *s.Wanted != 2 || *s.Failed != 2 {
		t.Errorf("status %+v", s)
	}
	failed := reg.Problems()
	if len(failed) != 2 || failed[0].Kind != "name" {
		t.Errorf("objects %+v", failed)
	}
}
