package controller_test

import (
	"fmt"
	"maps"
	"slices"
)

// changeRows changes what each transaction rests on: the rows of load balancers and of networks.
func (r *random) changeRows() {
	note := r.unique("note")
	operations := []string{
		setNote("Load_Balancer", `["external_ids","includes",["map",[["enabled","True"]]]]`, note),
		setNote("Load_Balancer", `["external_ids","includes",["map",[["enabled","False"]]]]`, note),
	}
	for name, n := range r.Networks {
		operations = append(operations, setNote("Logical_Switch", `["name","==","`+name+`"]`, note))
		n.Note = note
	}
	r.database.Transact(operations...)
	for _, b := range r.Balancers {
		for _, row := range b.Rows {
			row.Note = note
		}
	}
}

func setNote(table, where, note string) string {
	return `{"op":"mutate","table":"` + table + `","where":[` + where + `],"mutations":[["external_ids","delete",["set",["note"]]],["external_ids","insert",["map",[["note","` + note + `"]]]]]}`
}

// addForeign puts a load balancer of somebody else's on all networks: no transaction rests on that, and
// none may take it away. The one of before goes.
func (r *random) addForeign() {
	for name := range r.Foreign {
		r.database.Transact(`{"op":"delete","table":"Load_Balancer","where":[["name","==","` + name + `"]]}`)
		delete(r.Foreign, name)
	}
	name := r.unique("foreign")
	id := fmt.Sprintf("f0000000-0000-4000-8000-%012d", r.names)
	r.database.Transact(`{"op":"insert","table":"Load_Balancer","uuid":"`+id+`","row":{"name":"`+name+`"}}`,
		`{"op":"mutate","table":"Logical_Switch","where":[],"mutations":[["load_balancer","insert",["uuid","`+id+`"]]]}`)
	r.Foreign[name] = slices.Collect(maps.Keys(r.Networks))
}

// event is something that no call is about: a router port comes or goes, or the third writer takes
// away what a load balancer needs. The replica that acts repairs it.
func (r *random) event() {
	r.Helper()
	b := r.Balancers[one(r, r.Balancers)]
	switch n := r.IntN(4); {
	case n < 2 || b == nil:
		c := [][2]string{{"R1", "N2"}, {"R2", "N3"}, {"R2", "N2"}, {"R1", "N4"}}[r.IntN(4)]
		if slices.Contains(r.Routers[c[0]], c[1]) {
			r.note("router %s leaves %s", c[0], c[1])
			r.disconnect(c[0], c[1])
		} else {
			r.note("router %s comes to %s", c[0], c[1])
			r.connect(c[0], c[1])
		}
	case n == 2:
		r.note("the third writer removes the port of %s", b.ID)
		r.nbctl("lsp-del", b.Port)
	default:
		r.note("the third writer takes %s off its switches", b.ID)
		for _, name := range slices.Sorted(maps.Keys(r.Networks)) {
			r.nbctl("clear", "Logical_Switch", name, "load_balancer")
		}
		for name := range r.Foreign {
			r.Foreign[name] = nil
		}
	}
	r.settle()
}
