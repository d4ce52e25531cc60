package controller_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// record is a row as the database sends it.
type record map[string]json.RawMessage

// text is a string, or one of at most one that is not there.
func (r record) text(column string) string {
	list := r.set(column)
	return strings.Join(list, ",")
}

// set has a column's strings, or UUIDs.
func (r record) set(column string) (out []string) {
	var s string
	if json.Unmarshal(r[column], &s) == nil {
		return []string{s}
	}
	var tagged []json.RawMessage
	if json.Unmarshal(r[column], &tagged) != nil || len(tagged) != 2 {
		return nil
	}
	var atoms []json.RawMessage
	if json.Unmarshal(tagged[1], &atoms) != nil {
		return []string{atom(r[column])}
	}
	for _, raw := range atoms {
		out = append(out, atom(raw))
	}
	slices.Sort(out)
	return out
}

// atom is a string, or ["uuid", string].
func atom(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var uuid [2]string
	_ = json.Unmarshal(raw, &uuid) // nothing else is asked for
	return uuid[1]
}

func (r record) pairs(column string) map[string]string {
	var tagged [2]json.RawMessage
	var pairs [][2]string
	if json.Unmarshal(r[column], &tagged) == nil {
		_ = json.Unmarshal(tagged[1], &pairs) // nothing but maps is asked for
	}
	out := map[string]string{}
	for _, p := range pairs {
		out[p[0]] = p[1]
	}
	return out
}

// content is what the database has.
type content struct{ balancers, switches, routers, ports []record }

func (w *world) content() content {
	w.Helper()
	tables := []string{"Load_Balancer", "Logical_Switch", "Logical_Router", "Logical_Switch_Port"}
	var selects []string
	for _, name := range tables {
		selects = append(selects, fmt.Sprintf(`{"op":"select","table":%q,"where":[]}`, name))
	}
	var results []struct{ Rows []record }
	if err := json.Unmarshal([]byte(w.database.Transact(selects...)), &results); err != nil || len(results) != len(tables) {
		w.Fatalf("%d results: %v", len(results), err)
	}
	return content{results[0].Rows, results[1].Rows, results[2].Rows, results[3].Rows}
}

// referring are the names of the rows that have a UUID in a column.
func referring(rows []record, column, uuid string) (names []string) {
	for _, r := range rows {
		if slices.Contains(r.set(column), uuid) {
			names = append(names, r.text("name"))
		}
	}
	slices.Sort(names)
	return names
}

// lines are model.lines of what the database has.
func (c content) lines() []string {
	var out lines
	for _, ls := range c.switches {
		out.add("switch %s note %s", ls.text("name"), ls.pairs("external_ids")["note"])
	}
	for _, lsp := range c.ports {
		on := strings.Join(referring(c.switches, "ports", lsp.text("_uuid")), ",")
		ids := lsp.pairs("external_ids")
		if lsp.text("type") == "router" {
			out.add("port %s on %s", lsp.text("name"), on)
		} else {
			out.add("port %s on %s with %s for %s", lsp.text("name"), on, ids["neutron:cidrs"], ids["neutron:port_name"])
		}
	}
	for _, lb := range c.balancers {
		switches := strings.Join(referring(c.switches, "load_balancer", lb.text("_uuid")), ",")
		if _, ours := lb.pairs("external_ids")["neutron:vip"]; !ours {
			out.add("foreign load balancer %s on %s", lb.text("name"), switches)
			continue
		}
		of := rowTitle(lb.text("name"), lb.text("protocol"))
		out.add("%s on switches %s", of, switches)
		out.add("%s on routers %s", of, strings.Join(referring(c.routers, "load_balancer", lb.text("_uuid")), ","))
		balancerLines(&out, of, lb)
	}
	return out.sorted()
}

func balancerLines(out *lines, of string, lb record) {
	for _, column := range []string{"selection_fields", "health_check"} {
		if text := lb.text(column); text != "" {
			out.add("%s %s %s", of, column, text)
		}
	}
	for _, column := range []string{"options", "ip_port_mappings"} {
		for k, v := range lb.pairs(column) {
			out.add("%s %s %s = %s", of, column, k, inOrder(v))
		}
	}
	for vip, backends := range lb.pairs("vips") {
		out.add("%s balances %s to %s", of, vip, inOrder(backends))
	}
	for k, v := range lb.pairs("external_ids") {
		switch {
		case strings.HasPrefix(k, "sluice:"):
			out.add("%s has %s named %v", of, k, object[any](v)["name"])
		case k == "ls_refs":
			out.add("%s key %s = %s", of, k, counted(object[int](v)))
		case k == "neutron:member_status":
			out.add("%s key %s = %v", of, k, object[string](v))
		case strings.HasPrefix(k, "pool_"), k == "lr_ref":
			out.add("%s key %s = %s", of, k, inOrder(v))
		default:
			out.add("%s key %s = %s", of, k, v)
		}
	}
}

// object reads a JSON object; what is none is empty, and so differs from each that is wanted.
func object[V any](text string) map[string]V {
	out := map[string]V{}
	_ = json.Unmarshal([]byte(text), &out)
	return out
}

// inOrder sorts a list whose order says nothing.
func inOrder(list string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Split(list, ","))), ",")
}

// dangling tells of references within the rows that lead nowhere, and of what is there twice.
func (c content) dangling() string {
	var out lines
	vips, owners := map[string]string{}, map[string]bool{}
	for _, lb := range c.balancers {
		ids := lb.pairs("external_ids")
		vip, ours := ids["neutron:vip"]
		if !ours {
			continue
		}
		name := lb.text("name")
		if other, taken := vips[vip]; taken && other != name {
			out.add("VIP %s is that of %s and %s", vip, name, other)
		}
		vips[vip], owners["ovn-lb-vip-"+name] = name, true
		c.danglingOf(&out, name, ids)
	}
	seen := map[string]bool{}
	for _, p := range c.ports {
		name, of := p.text("name"), p.pairs("external_ids")["neutron:port_name"]
		if strings.HasPrefix(of, "ovn-lb-vip-") && (!owners[of] || seen[of]) {
			out.add("port %s of %s has no load balancer, or is not its only one", name, of)
		}
		seen[of] = true
	}
	return strings.Join(out, "\n")
}

func (c content) danglingOf(out *lines, name string, ids map[string]string) {
	port := slices.ContainsFunc(c.ports, func(p record) bool { return p.text("name") == ids["neutron:vip_port_id"] })
	if !port {
		out.add("load balancer %s has no port %s", name, ids["neutron:vip_port_id"])
	}
	members := map[string]bool{}
	for k, v := range ids {
		if !strings.HasPrefix(k, "pool_") || v == "" {
			continue
		}
		for _, text := range strings.Split(v, ",") {
			members[strings.Split(text, "_")[1]] = true
		}
	}
	for id := range object[string](ids["neutron:member_status"]) {
		if !members[id] {
			out.add("load balancer %s has a state of the member %s, which is gone", name, id)
		}
	}
	for k, v := range ids {
		_, pool, _ := strings.Cut(v, ":pool_")
		_, there := ids["pool_"+pool]
		_, down := ids["pool_"+pool+":D"]
		if strings.HasPrefix(k, "listener_") && pool != "" && !there && !down {
			out.add("load balancer %s: %s leads to %s, which is gone", name, k, pool)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(ids)) {
		kind, id, _ := strings.Cut(strings.TrimPrefix(k, "sluice:"), ":")
		there := map[string]bool{"l": has(ids, "listener_"+id), "p": has(ids, "pool_"+id), "m": members[id], "lb": true}
		if strings.HasPrefix(k, "sluice:") && !there[kind] {
			out.add("load balancer %s: %s is of nothing", name, k)
		}
	}
}

func has(ids map[string]string, key string) bool {
	_, up := ids[key]
	_, down := ids[key+":D"]
	return up || down
}
