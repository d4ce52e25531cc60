package ovn

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// northboundRows are all rows of the Northbound database that a follower has, by _uuid.
func (w *watch) northboundRows() map[UUID]Row {
	out := map[UUID]Row{}
	w.View(func(r *Rows) {
		for _, rows := range r.allNB() {
			for _, row := range rows {
				out[row.Key()] = row
			}
		}
	})
	return out
}

// sameRows compares rows by what the database says.
var sameRows = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(LoadBalancer{}, "Revision")}

// TestRecall: a follower that starts while the Northbound database is away has the rows of
// the one before, once it has waited, and those that there are when the database answers.
func TestRecall(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.nb("lr-nat-add", "r1", "snat", "172.24.4.1", "10.10.0.0/24", "--", "lr-route-add", "r1", "0.0.0.0/0", "172.24.4.254",
		"--", "lb-add", "lb1", "172.24.4.80:80", "10.10.0.5:8080", "--", "lr-lb-add", "r1", "lb1",
		"--", "lb-add", "lb6", "[2001:db8:ff::80]:80", "[2001:db8:10::5]:8080", "--", "lr-lb-add", "r1", "lb6")
	cfg := Config{
		Northbound: l.remote("nb"), NorthboundPatience: time.Second, Memory: filepath.Join(t.TempDir(), "northbound.json"),
		Needs: Needs{LoadBalancing: true},
	}
	complete := func(w *watch, balancers int) func() bool {
		return func() (ok bool) {
			w.View(func(r *Rows) {
				if p, there := r.Port("gw-r1"); there {
					nat, known := r.NATOf(p.Datapath)
					list, alsoKnown := r.BalancersOf(p.Datapath)
					ok = known && alsoKnown && len(nat) == 1 && len(list) == balancers
				}
			})
			return ok
		}
	}
	first := l.follow(cfg)
	first.until("the rows", complete(first, 2))
	want := first.northboundRows()
	first.end()
	if info, err := os.Stat(cfg.Memory); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}

	// Meanwhile one goes and one comes.
	l.nb("lb-del", "lb6", "--", "lr-nat-del", "r1", "--", "lr-nat-add", "r1", "snat", "172.24.4.9", "10.10.0.0/24",
		"--", "lb-add", "lb2", "172.24.4.82:80", "10.10.0.5:8080", "--", "lr-lb-add", "r1", "lb2",
		"--", "lb-add", "lb3", "172.24.4.83:80", "10.10.0.5:8080", "--", "lr-lb-add", "r1", "lb3")
	l.run("ovs-appctl", "-t", l.path("nb.ctl"), "exit")
	second := l.follow(cfg)
	l.waitFor("what is remembered", complete(second, 2))
	if diff := cmp.Diff(want, second.northboundRows(), sameRows); diff != "" {
		t.Error(diff)
	}
	expects := func() (yes bool) {
		second.View(func(r *Rows) { yes = r.ExpectsNB() })
		return yes
	}
	if s := second.Status(); expects() || s.InSync.NB || !s.InSync.SB || s.Recalled.IsZero() {
		t.Errorf("expected: %v, %+v", expects(), s)
	}
	l.serve("nb")
	second.until("the database", func() bool { return complete(second, 3)() && expects() && second.Status().Recalled.IsZero() })
	third := l.follow(Config{Northbound: cfg.Northbound, Needs: cfg.Needs})
	third.until("the rows", complete(third, 3))
	if diff := cmp.Diff(third.northboundRows(), second.northboundRows(), sameRows); diff != "" {
		t.Error(diff)
	}
}

// TestRecallRefuses: a file that is not for this follower is not used.
func TestRecallRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "northbound.json")
	follower := func() *Follower {
		f, err := NewFollower(Config{
			VSwitch: "unix:/none", Northbound: "unix:/none", SystemID: "a1", Memory: path, Handle: func(Event) {},
			Needs: Needs{LoadBalancing: true, ACLs: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	write := func(change func(*remembered)) {
		m := follower().memory
		r := remembered{Boot: m.boot, SystemID: "a1", Layout: m.layout, Columns: m.columns, rows: [][]Row{{NAT{UUID: "n", LogicalIP: "192.0.2.1"}}}}
		change(&r)
		if err := r.save(path); err != nil {
			t.Fatal(err)
		}
	}
	same := func(*remembered) {}
	for name, c := range map[string]struct {
		prepare func()
		used    bool
	}{
		"as it is":       {func() { write(same) }, true},
		"none":           {func() { _ = os.Remove(path) }, false},
		"empty":          {func() { _ = os.WriteFile(path, nil, 0o600) }, false},
		"cut":            {func() { write(same); b, _ := os.ReadFile(path); _ = os.WriteFile(path, b[:len(b)-9], 0o600) }, false},
		"a directory":    {func() { _ = os.Remove(path); _ = os.Mkdir(path, 0o700) }, false},
		"another boot":   {func() { _ = os.Remove(path); write(func(r *remembered) { r.Boot = "another" }) }, false},
		"another node":   {func() { write(func(r *remembered) { r.SystemID = "a2" }) }, false},
		"another build":  {func() { write(func(r *remembered) { r.Layout = "another" }) }, false},
		"other settings": {func() { write(func(r *remembered) { r.Columns, _ = northboundColumns(Needs{}) }) }, false},
		"no table":       {func() { write(func(r *remembered) { r.rows = [][]Row{{Chassis{UUID: "c"}}} }) }, false},
		"old":            {func() { write(same); at := time.Now().Add(-2 * memoryFor); _ = os.Chtimes(path, at, at) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.RemoveAll(path)
			c.prepare()
			f := follower()
			f.recall()
			if used := len(f.rows.nat) == 1; used != c.used || used == f.memory.until.IsZero() {
				t.Errorf("used: %v, until %v", used, f.memory.until)
			}
		})
	}
}

// TestWriterWithoutFile: a file that is not there yet is no reason to warn; one that cannot be written is.
func TestWriterWithoutFile(t *testing.T) {
	var said strings.Builder
	m := newMemory(Config{Northbound: "unix:/none", Memory: filepath.Join(t.TempDir(), "none", "northbound.json")})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.writer(ctx, slog.New(slog.NewTextHandler(&said, nil))) }()
	m.write <- remembered{at: time.Now()}
	m.write <- remembered{rows: [][]Row{}, at: time.Now()}
	for range cap(m.write) + 1 { // it has done with those before
		m.write <- remembered{at: time.Now()}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(said.String(), "is not saved"); n != 1 {
		t.Errorf("%d warnings: %s", n, said.String())
	}
}

// TestRemembersAll: each column of each row, and each table.
func TestRemembersAll(t *testing.T) {
	var changes []Change
	rows := NewRows()
	for table, typ := range northboundTypes {
		row := reflect.New(typ)
		fill(row.Elem())
		r := row.Elem().Interface().(Row)
		if r.table() != table {
			t.Errorf("%v is of table %d", typ, table)
		}
		changes = append(changes, Set(r))
	}
	rows.Apply(changes)
	all := rows.allNB()
	if n := len(slices.Concat(all...)); n != len(changes) || len(all) != len(changes) {
		t.Errorf("of %d types there are %d rows in %d tables", len(changes), n, len(all))
	}
	path := filepath.Join(t.TempDir(), "northbound.json")
	m := newMemory(Config{Northbound: "unix:/none", Memory: path})
	if err := (remembered{Boot: m.boot, Layout: m.layout, Columns: m.columns, rows: all}).save(path); err != nil {
		t.Fatal(err)
	}
	got, _, err := m.read("")
	if err != nil {
		t.Fatal(err)
	}
	byTable := cmpopts.SortSlices(func(a, b Change) bool { return a.Table < b.Table })
	if diff := cmp.Diff(changes, got, byTable, sameRows); diff != "" {
		t.Error(diff)
	}
}

// fill gives each field another value than its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if u, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
			if err := u.UnmarshalText([]byte("2001:db8::1")); err != nil {
				panic(err)
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default:
		panic(v.Type())
	}
}

// TestLayout: another field, or another meaning of a table's number, is another layout.
func TestLayout(t *testing.T) {
	type a struct{ UUID, Name string }
	type b struct {
		UUID  string
		Names []string
	}
	seen := map[string]bool{}
	for _, types := range []map[Table]reflect.Type{
		{1: reflect.TypeFor[a]()}, {1: reflect.TypeFor[b]()}, {2: reflect.TypeFor[b]()}, {1: reflect.TypeFor[a](), 2: reflect.TypeFor[b]()},
	} {
		seen[layout(types)] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d layouts, want 4", len(seen))
	}
}
