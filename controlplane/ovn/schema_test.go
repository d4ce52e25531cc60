package ovn

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// TestFollowerAcrossSchemas: databases are upgraded under the follower, from the
// installed OVN's schema to 25.03's, to one that is newer than Sluice, back, and
// to one without columns that are followed. No row is missing at any time, what
// changes is followed, and the node's own row is written.
func TestFollowerAcrossSchemas(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	w := l.follow(Config{
		Needs:      Needs{Hosts: func(*Rows, RouterInterface) bool { return true }, NextHopMAC: "02:53:4c:55:49:43"},
		Northbound: l.remote("nb"),
	})
	want := append([]string{"ln-public"}, owned("r1", true)...)
	w.untilPorts("the start", want...)
	installed := map[string][]byte{}
	for _, db := range []string{"sb", "nb"} {
		raw, err := os.ReadFile("/usr/share/ovn/ovn-" + db + ".ovsschema")
		if err != nil {
			t.Fatal(err)
		}
		installed[db] = raw
	}
	later := map[string][]byte{
		"sb": edited(t, schema.Southbound, nil, "Port_Binding", "Chassis_Private"),
		"nb": edited(t, schema.Northbound, nil, "Logical_Router", "NAT"),
	}
	for i, step := range []struct {
		name    string
		schemas map[string][]byte
	}{
		{"25.03", map[string][]byte{"sb": schema.Southbound, "nb": schema.Northbound}},
		{"later", later},
		{"installed", installed},
	} {
		for db, raw := range step.schemas {
			l.convert(w, db, step.name, raw, want)
		}
		w.untilPorts("the rows with schema "+step.name, want...)
		router := []string{"r2", "r3", "r4"}[i]
		l.tenant(i+2, "public", "a1")
		want = append(want, owned(router, true)...)
		w.untilPorts("a new tenant with schema "+step.name, want...)
		if err := w.Publish(map[string]string{"sluice-version": step.name}); err != nil {
			t.Fatal(err)
		}
		l.waitFor("the own row with schema "+step.name, func() bool {
			return strings.Trim(l.sb("--if-exists", "get", "Chassis_Private", "a1", "external_ids:sluice-version"), `"`) == step.name
		})
	}
	l.lacking(w, want)
	if s := w.Status(); s.SBErr != nil || s.NBErr != nil || s.Publish != nil {
		t.Errorf("status %+v", s)
	}
}

// lacking takes columns away that are followed: one has a condition on it. OVN's
// own programs want all of their columns, so the change is written by hand.
func (l *lab) lacking(w *watch, want []string) {
	l.t.Helper()
	less := edited(l.t, schema.Southbound, map[string]string{"MAC_Binding": "mac", "Port_Binding": "nat_addresses"})
	l.convert(w, "sb", "less", less, want)
	w.untilPorts("the rows without these columns", want...)
	l.run("ovsdb-client", "transact", l.remote("sb"),
		`["OVN_Southbound",{"op":"update","table":"Port_Binding","where":[["logical_port","==","vm-r1"]],"row":{"mac":"02:00:00:02:00:05 10.10.0.66"}}]`)
	w.until("the change without these columns", func() (ok bool) {
		w.View(func(r *Rows) {
			for _, p := range r.ports {
				ok = ok || slices.Equal(p.MAC, []string{"02:00:00:02:00:05 10.10.0.66"})
			}
		})
		return ok
	})
}

// convert changes a database's schema while it is served, as an upgrade of OVN
// does, and waits until it is followed again. The wanted rows are there all the time.
func (l *lab) convert(w *watch, db, name string, raw []byte, want []string) {
	l.t.Helper()
	file := l.path(db + "-" + name + ".ovsschema")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		l.t.Fatal(err)
	}
	var s struct{ Name, Version string }
	if err := json.Unmarshal(raw, &s); err != nil {
		l.t.Fatal(err)
	}
	l.run("ovsdb-client", "convert", l.remote(db), file)
	l.waitFor(s.Name+" with schema "+s.Version, func() bool {
		have := w.ports()
		for _, p := range want {
			if !slices.Contains(have, p) {
				l.t.Fatalf("port %s is missing while %s is upgraded; there are %v", p, s.Name, have)
			}
		}
		for _, session := range w.Status().Sessions {
			if session.Database == s.Name && session.SchemaVersion == s.Version && session.InSync {
				return true
			}
		}
		return false
	})
}

// edited is a schema of a version of its own, with a table more, a column more in
// some tables, and without one column in others.
func edited(t *testing.T, raw []byte, without map[string]string, more ...string) []byte {
	t.Helper()
	type table struct {
		Columns map[string]json.RawMessage `json:"columns"`
		Indexes json.RawMessage            `json:"indexes,omitempty"`
		MaxRows int                        `json:"maxRows,omitempty"`
		IsRoot  bool                       `json:"isRoot,omitempty"`
	}
	var s struct {
		Name    string           `json:"name"`
		Version string           `json:"version"`
		Tables  map[string]table `json:"tables"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	s.Version = "99.1.0"
	future := json.RawMessage(`{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}`)
	s.Tables["Future"] = table{Columns: map[string]json.RawMessage{"future": future}, IsRoot: true}
	for name, column := range without {
		delete(s.Tables[name].Columns, column)
	}
	for _, name := range more {
		s.Tables[name].Columns["future"] = future
	}
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
