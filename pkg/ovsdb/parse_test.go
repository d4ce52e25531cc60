package ovsdb_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

func TestParseEndpoints(t *testing.T) {
	for list, want := range map[string][]string{
		"tcp:192.0.2.1:6642":                         {"tcp 192.0.2.1:6642"},
		"ssl:[2001:db8::1]:6642, unix:/run/a:b.sock": {"ssl [2001:db8::1]:6642", "unix /run/a:b.sock"},
		"tcp:sb.example:6642,,tcp:[::1]:1":           {"tcp sb.example:6642", "tcp [::1]:1"},
		"tcp:[fe80::1%eth0]:6642":                    {"tcp [fe80::1%eth0]:6642"},
	} {
		if got, err := ovsdb.ParseEndpoints(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", list, got, err)
		}
	}
	for _, list := range []string{"", " , ", "tcp", "tcp:", "tcp:192.0.2.1", "tcp:2001:db8::1:6642", "tcp::6642",
		"tcp:h:0", "tcp:h:65536", "tcp:h:x", "unix:", "http:h:80", "ptcp:6642:h", "192.0.2.1:6642"} {
		if got, err := ovsdb.ParseEndpoints(list); err == nil {
			t.Errorf("%q: %q, no error", list, got)
		}
	}
}

func FuzzParseEndpoints(f *testing.F) {
	f.Add("tcp:192.0.2.1:6642,ssl:[2001:db8::1]:6642,unix:/run/x")
	f.Add("tcp:[::1:1")
	f.Fuzz(func(t *testing.T, list string) {
		got, err := ovsdb.ParseEndpoints(list)
		if err == nil && len(got) == 0 {
			t.Error("neither an endpoint nor an error")
		}
	})
}

func TestUUIDs(t *testing.T) {
	for text, want := range map[string]bool{
		"9c5a1e0c-64a3-4a4e-8e4f-000000000001": true, "9C5A1E0C-64a3-4a4e-8e4f-000000000001": false, "9c5a1e0c-64a3-4a4e-8e4f-00000000001": false,
		"9c5a1e0c-64a3-4a4e-8e4f-0000000000011": false, "9c5a1e0c64a3-4a4e-8e4f-00000000000-1": false, "9c5a1e0c-64a3-4a4e-8e4f-00000000000g": false, "row": false, "": false,
	} {
		if got := ovsdb.UUID(text).Valid(); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestClauseJSON(t *testing.T) {
	u := "0a1b2c3d-0000-4000-8000-00000000000f"
	for want, clause := range map[string]ovsdb.Clause{
		`true`:                                       ovsdb.All(),
		`["name","==","a"]`:                          ovsdb.Equal("name", "a"),
		`["name","==","a\"b"]`:                       ovsdb.Equal("name", `a"b`),
		`["nb_cfg","==",7]`:                          ovsdb.Equal("nb_cfg", 7),
		`["_uuid","==",["uuid","` + u + `"]]`:        ovsdb.Equal("_uuid", ovsdb.UUID(u)),
		`["encaps","includes",["uuid","` + u + `"]]`: ovsdb.Includes("encaps", ovsdb.UUID(u)),
	} {
		raw, err := json.Marshal(clause)
		if err != nil || string(raw) != want {
			t.Errorf("%s, %v, want %s", raw, err, want)
		}
		if err := southbound.CheckClause(sb.ChassisTable, clause); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := southbound.CheckClause(sb.ChassisTable, ovsdb.Equal("nb_cfg", math.NaN())); err == nil {
		t.Error("a condition on NaN is accepted")
	}
}

func TestConditionsMeanTheSame(t *testing.T) {
	a, b := ovsdb.Equal("name", "a"), ovsdb.Equal("name", "b")
	for _, c := range []struct {
		x, y ovsdb.Conditions
		same bool
	}{
		{nil, ovsdb.Conditions{"T": nil}, true},
		{ovsdb.Conditions{"T": {a, b, a}}, ovsdb.Conditions{"T": {b, a}}, true},
		{ovsdb.Conditions{"T": {a, ovsdb.All()}}, ovsdb.Conditions{"T": {ovsdb.All()}}, true},
		{ovsdb.Conditions{"T": {a}}, ovsdb.Conditions{"U": {a}}, false},
		{ovsdb.Conditions{"T": {a}}, ovsdb.Conditions{"T": {b}}, false},
	} {
		if c.x.Same(c.y) != c.same {
			t.Errorf("%v and %v: same is %t", c.x, c.y, !c.same)
		}
	}
}

func FuzzCondition(f *testing.F) {
	f.Add("name", "==", `"a"`)
	f.Add("encaps", "includes", `["uuid","x"]`)
	f.Add("other_config", "includes", `["map",[["a"]]]`)
	f.Add("_uuid", "==", `[]`)
	f.Fuzz(func(t *testing.T, column, function, value string) {
		clause := ovsdb.RawClause(column, function, value)
		if southbound.CheckClause(sb.ChassisTable, clause) != nil {
			return
		}
		raw, err := json.Marshal(clause)
		if err != nil || !json.Valid(raw) {
			t.Errorf("an accepted clause does not marshal: %s, %v", raw, err)
		}
	})
}

func TestFrames(t *testing.T) {
	first := `{"a":["}","\\\"{"],"b":{"c":[{}]}}`
	big := `{"x":"` + strings.Repeat("y{", 1<<20) + `"}`
	got, err := ovsdb.Frames([]byte(" " + first + first + "\n\t" + big + " "))
	if err != nil || len(got) != 3 || string(got[0]) != first || string(got[2]) != big {
		t.Errorf("%d frames, %v", len(got), err)
	}
	for _, stream := range []string{`{"a":`, `[]`, `{}x`, `"a"`, `}`} {
		if _, err := ovsdb.Frames([]byte(stream)); err == nil {
			t.Errorf("%s: no error", stream)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{}}{"method":"echo"}`), []byte(`{"a":"\"}"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) || bytes.TrimSpace(a)[0] != '{' || bytes.TrimSpace(b)[0] != '{' {
			_, _ = ovsdb.Frames(a) // must only not panic
			return
		}
		got, err := ovsdb.Frames(slices.Concat(a, b))
		if err != nil || len(got) != 2 {
			t.Errorf("two messages became %d, %v", len(got), err)
		}
	})
}

func decoder(t testing.TB) ovsdb.Decoder {
	config := sbConfig("tcp:[::1]:6642")
	config.Tables[sb.PortBindingTable] = nil
	config.Handler = func(ovsdb.Batch) {}
	s, err := ovsdb.NewSession(config)
	if err != nil {
		t.Fatal(err)
	}
	return ovsdb.Decoder{Session: s}
}

const (
	row1    = "00000000-0000-4000-8000-000000000001"
	content = `{"Chassis":{"` + row1 + `":{"initial":{"name":"a","nb_cfg":3,"other_config":["map",[["k","v"]]],` +
		`"transport_zones":["set",["z","y"]],"encaps":["uuid","` + row1 + `"]}}}}`
)

// TestNonsense: what a server must not send is an error, and the content stays
// what the handler knows.
func TestNonsense(t *testing.T) {
	update := func(table, u string) string {
		return `["data","` + row1 + `",{"` + table + `":{"` + row1 + `":` + u + `}}]`
	}
	for name, params := range map[string]string{
		"not an array":     `{}`,
		"too short":        `["data"]`,
		"foreign monitor":  `["other","x",{}]`,
		"foreign table":    update("Nosuch", `{"insert":{}}`),
		"null update":      update("Chassis", `null`),
		"empty update":     update("Chassis", `{}`),
		"string for int":   update("Chassis", `{"modify":{"nb_cfg":"3"}}`),
		"null for string":  update("Chassis", `{"modify":{"name":null}}`),
		"set for map":      update("Chassis", `{"modify":{"other_config":["set",[]]}}`),
		"empty array":      update("Chassis", `{"modify":{"other_config":[]}}`),
		"pair of one":      update("Chassis", `{"modify":{"other_config":["map",[["a"]]]}}`),
		"map for set":      update("Chassis", `{"modify":{"transport_zones":["map",[]]}}`),
		"nested set":       update("Chassis", `{"modify":{"transport_zones":["set",[["set",[]]]]}}`),
		"string for UUID":  update("Chassis", `{"modify":{"encaps":"x"}}`),
		"UUID of a number": update("Chassis", `{"modify":{"encaps":["uuid",1]}}`),
		"two for optional": update("Port_Binding", `{"insert":{"chassis":["set",[["uuid","a"],["uuid","b"]]]}}`),
		"unknown row":      update("Encap", `{"modify":{"ip":"x"}}`),
	} {
		d := decoder(t)
		if err := d.First(json.RawMessage(content), false); err != nil {
			t.Fatal(err)
		}
		first := d.Flush()
		if err := d.Notify("update3", json.RawMessage(params)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if changes := d.Flush(); len(changes) != 0 {
			t.Errorf("%s: left %+v", name, changes)
		}
		if err := d.First(json.RawMessage(`{}`), false); err != nil {
			t.Error(err)
		}
		if changes := d.Flush(); len(changes) != 1 || changes[0].Old != first[0].New {
			t.Errorf("%s: the content was not what the handler knew: %+v", name, changes)
		}
	}
}

// FuzzMessages feeds a session whatever a server may say.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(content), []byte(`["data","t",{"Chassis":{"`+row1+`":{"modify":{"other_config":["map",[["k","v"]]]}}}}]`), true)
	f.Add([]byte(content), []byte(`["data","t",{"Chassis":{"`+row1+`":{"delete":null}}}]`), false)
	f.Add([]byte(`{}`), []byte(`["server",{"Database":{"`+row1+`":{"initial":{"name":"OVN_Southbound","model":"clustered","connected":true,"schema":"","cid":["set",[]]}}}}]`), false)
	f.Add([]byte(`{"Chassis":null}`), []byte(`null`), true)
	f.Fuzz(func(t *testing.T, first, params []byte, found bool) {
		d := decoder(t)
		_ = d.First(first, found)
		_ = d.Notify("update2", params)
		_ = d.Notify("update3", params)
		for _, c := range d.Flush() {
			if c.Old == nil && c.New == nil || c.Old != nil && c.New != nil && c.Old.EqualsModel(c.New) {
				t.Errorf("a change that is none: %+v", c)
			}
		}
	})
}

func FuzzServerSchema(f *testing.F) {
	f.Add([]byte(`{"tables":{"Chassis":{"columns":{"name":{"type":{"key":"string","max":"unlimited"}}}}}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = southbound.ServerSchema(raw, sb.ChassisTable, "name") // must only not panic
	})
}

func TestServerSchemaShapes(t *testing.T) {
	for column, want := range map[string]bool{
		`"name":{"type":"string"}`:                                                           true,
		`"name":{"type":{"key":{"type":"string","enum":"a"}}}`:                               true,
		`"name":{"type":{"key":"string","min":0,"max":1}}`:                                   false,
		`"name":{"type":"integer"}`:                                                          false,
		`"name":{"type":{"key":"string","min":0,"max":"unlimited"}}`:                         false,
		`"other":{"type":"string"}`:                                                          false,
		`"other_config":{"type":{"key":"string","value":"string","max":"unlimited"}}`:        true,
		`"other_config":{"type":{"key":"string","value":"integer","max":"unlimited"}}`:       false,
		`"other_config":{"type":{"key":"string","max":"unlimited"}}`:                         false,
		`"encaps":{"type":{"key":{"type":"uuid","refTable":"E"},"min":1,"max":"unlimited"}}`: true,
		`"encaps":{"type":{"key":"string","min":0,"max":"unlimited"}}`:                       false,
		`"encaps":{"type":{"key":"uuid","min":0,"max":1}}`:                                   false,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(column, `"`), `"`)
		got, err := southbound.ServerSchema([]byte(`{"tables":{"Chassis":{"columns":{`+column+`}}}}`), sb.ChassisTable, name)
		if err != nil || got != want {
			t.Errorf("%s: %t, %v", column, got, err)
		}
	}
}

func TestSuitableServers(t *testing.T) {
	const cid = `["uuid","c1"]`
	cluster := func(connected, leader string, index string) string {
		return `{"name":"d","model":"clustered","connected":` + connected + `,"leader":` + leader +
			`,"schema":"{}","cid":` + cid + `,"index":` + index + `}`
	}
	for _, c := range []struct {
		row        string
		leaderOnly bool
		want       string
	}{
		{`{"name":"d","model":"standalone","connected":true,"leader":true,"schema":"{}","cid":["set",[]],"index":["set",[]]}`, true, ""},
		{cluster("true", "true", "7"), true, ""},
		{cluster("true", "false", "7"), false, ""},
		{cluster("true", "false", "7"), true, "not the cluster's leader"},
		{cluster("false", "false", "7"), false, "lost its cluster's quorum"},
		{cluster("true", "true", "4"), false, "is behind"},
		{cluster("true", "true", "5"), false, ""},
		{strings.Replace(cluster("true", "true", "7"), "c1", "c2", 1), false, "is not where the rows are from"},
		{`{"model":"clustered","connected":true,"schema":["set",[]]}`, false, "not joined"},
		{`{"model":"relay","connected":true,"schema":"{}"}`, false, ""},
		{`{"model":"relay","connected":false,"schema":"{}"}`, false, "lost its source"},
		{`{"model":1}`, false, "cannot unmarshal"},
	} {
		err := ovsdb.Suitable(json.RawMessage(c.row), c.leaderOnly, cid, 5)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s (leader only %t): %v, want %q", c.row, c.leaderOnly, err, c.want)
		}
	}
}
