package openstack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// step is a line of testdata/provider.jsonl: the rows that Neutron and ovn-octavia-provider 8.0.0 wrote
// for what the note says. A set of one member is a bare value, names in angle brackets stand for IDs.
type step struct {
	N    int
	Note string
	Rows map[string][]map[string]any
}

var placeholder = regexp.MustCompile(`<[a-z0-9-]+>`)

// ids are what placeholders stand for.
type ids map[string]string

func (i ids) of(name string) string {
	if i[name] == "" {
		i[name] = uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
	}
	return i[name]
}

func (i ids) read(t *testing.T, line []byte) (s step) {
	t.Helper()
	line = placeholder.ReplaceAllFunc(line, func(name []byte) []byte {
		if bytes.HasPrefix(name, []byte("<row-")) {
			return name
		}
		return []byte(i.of(string(name)))
	})
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// wire is a recorded value as OVSDB has it, RFC 7047.
func (i ids) wire(value any) any {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "<row-") {
			return []any{"uuid", i.of(v)}
		}
	case []any:
		set := make([]any, len(v))
		for n := range v {
			set[n] = i.wire(v[n])
		}
		return []any{"set", set}
	case map[string]any:
		pairs := []any{}
		for k, one := range v {
			pairs = append(pairs, []any{k, i.wire(one)})
		}
		return []any{"map", pairs}
	}
	return value
}

// insert is the operation that inserts a recorded row.
func (i ids) insert(t *testing.T, table string, row map[string]any) string {
	t.Helper()
	columns := map[string]any{}
	for column, value := range row {
		if column != "_uuid" {
			columns[column] = i.wire(value)
		}
	}
	raw, err := json.Marshal(map[string]any{"op": "insert", "table": table, "uuid": i.of(row["_uuid"].(string)), "row": columns})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// plain is a value of OVSDB as the records have it; nil for an empty set or map.
func plain(value any) any {
	list, is := value.([]any)
	if !is {
		return value
	}
	switch list[0] {
	case "map":
		out := map[string]any{}
		for _, pair := range list[1].([]any) {
			out[pair.([]any)[0].(string)] = pair.([]any)[1]
		}
		if len(out) > 0 {
			return out
		}
	case "set":
		var out []any
		for _, one := range list[1].([]any) {
			out = append(out, plain(one))
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		if len(out) > 0 {
			return out
		}
	default:
		return list[1]
	}
	return nil
}

// balancerRow is the only row of Load_Balancer, with the columns that have a value.
func (c *cloud) balancerRow() map[string]any {
	c.Helper()
	var results []struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(c.database.Transact(`{"op": "select", "table": "Load_Balancer", "where": []}`)), &results); err != nil {
		c.Fatal(err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		c.Fatalf("rows %v", results)
	}
	row := map[string]any{}
	for column, value := range results[0].Rows[0] {
		if v := plain(value); v != nil && column != "_version" {
			row[column] = v
		}
	}
	return row
}

// expect compares the row with the provider's after the same step. Beside it has what was there before,
// and keys of ours, which no parser of the provider's may take for one of its own.
func (c *cloud) expect(s step, beside map[string]string) {
	c.Helper()
	want := maps.Clone(s.Rows["Load_Balancer"][0])
	got := c.balancerRow()
	got["_uuid"] = want["_uuid"]
	keys := maps.Clone(got["external_ids"].(map[string]any))
	own := 0
	for k := range keys {
		if strings.HasPrefix(k, "sluice:") {
			own++
			if strings.Contains(k, "listener_") || strings.Contains(k, "pool_") {
				c.Errorf("record %d: the provider takes %s for its own", s.N, k)
			}
			delete(keys, k)
		}
	}
	if own == 0 {
		c.Errorf("record %d: nothing of ours in %v", s.N, got)
	}
	for k, v := range beside {
		if keys[k] != v {
			c.Errorf("record %d: %s is %v, was %s", s.N, k, keys[k], v)
		}
		delete(keys, k)
	}
	got["external_ids"] = keys
	if !reflect.DeepEqual(got["options"], map[string]any{"reject": "true"}) {
		c.Errorf("record %d: options %v", s.N, got["options"])
	}
	delete(got, "options")
	if !reflect.DeepEqual(got, want) {
		c.Errorf("record %d, %s: the row is\n%v\nthe provider's\n%v", s.N, s.Note, got, want)
	}
}

// A load balancer that ovn-octavia-provider wrote is listed, and gets members and a listener: after
// each change its row is what the provider itself wrote for it.
func TestProvidersBalancer(t *testing.T) {
	f, err := os.Open("testdata/provider.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	known := ids{}
	next := func() step {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("no step is left", lines.Err())
		}
		return known.read(t, lines.Bytes())
	}
	c := newCloud(t, schema.Northbound)
	var inserts []string
	beside := map[string]string{"vendor:note": "kept"}
	for table, rows := range next().Rows {
		for _, row := range rows {
			if table == "Load_Balancer" {
				row["options"] = map[string]any{"reject": "true"}
				for k, v := range beside {
					row["external_ids"].(map[string]any)[k] = v
				}
			}
			inserts = append(inserts, known.insert(t, table, row))
		}
	}
	c.database.Transact(inserts...)
	where := func() string {
		return c.nbctl("--columns=name,load_balancer", "list", "Logical_Switch") + c.nbctl("--columns=name,load_balancer", "list", "Logical_Router")
	}
	before := where()

	id, pool := known.of("<lb1>"), known.of("<pool-p1>")
	for range 2 {
		if out := c.must("loadbalancer", "list", "-f", "value", "-c", "id", "-c", "vip_address", "-c", "provisioning_status", "-c", "provider"); out != id+" 10.0.0.10 ACTIVE ovn" {
			t.Errorf("listed as %q", out)
		}
	}
	for _, m := range []struct{ name, address, subnet string }{{"<member-1>", "10.0.0.107", "<subnet-a>"}, {"<member-2>", "20.0.0.107", "<subnet-b>"}} {
		known[m.name] = c.must("loadbalancer", "member", "create", "--address", m.address, "--protocol-port", "80", "--subnet-id", known.of(m.subnet),
			"--wait", pool, "-f", "value", "-c", "id")
		c.expect(next(), beside)
	}
	known["<listener-l1>"] = c.must("loadbalancer", "listener", "create", "--protocol", "TCP", "--protocol-port", "82", "--default-pool", pool, "--wait", id,
		"-f", "value", "-c", "id")
	c.expect(next(), beside)
	if after := where(); after != before {
		t.Errorf("associated with\n%s\nbefore with\n%s", after, before)
	}
	// Two of one second are in the order of their IDs.
	members := strings.Split(c.must("loadbalancer", "member", "list", pool, "-f", "value", "-c", "address", "-c", "operating_status"), "\n")
	if slices.Sort(members); !slices.Equal(members, []string{"10.0.0.107 NO_MONITOR", "20.0.0.107 NO_MONITOR"}) {
		t.Errorf("members %q", members)
	}
}
