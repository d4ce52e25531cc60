package tables

import (
	"os"
	"reflect"
	"regexp"
	"testing"
)

// Every table of package intent is in exactly one order, but those that only the gateway reads.
func TestEveryTableIsInOneOrder(t *testing.T) {
	text, err := os.ReadFile("../intent/table.go")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]int{"relays": 1, "standby": 1, "learners": 1} // Gateway.want and Gateway.patch
	for _, keys := range [][]any{keysIn(order), keysIn(clientsOrder), keysIn(metadataOrder), keysIn(underlayOrder)} {
		once := map[string]bool{}
		for _, table := range keys {
			once[reflect.ValueOf(table).Elem().FieldByName("Name").String()] = true
		}
		for name := range once {
			in[name]++
		}
	}
	tables := regexp.MustCompile(`= &Table\[[^\]]*\]\{"([^"]+)"`).FindAllSubmatch(text, -1)
	for _, table := range tables {
		name := string(table[1])
		if in[name] != 1 {
			t.Errorf("table %s is in %d orders", name, in[name])
		}
		delete(in, name)
	}
	if len(tables) == 0 || len(in) > 0 {
		t.Errorf("%d tables; in an order and not in package intent: %v", len(tables), in)
	}
}

// keysIn are the tables of an order; a table with an early part is in it twice.
func keysIn[O owner](list []entry[O]) (keys []any) {
	for _, e := range list {
		keys = append(keys, e.Key())
	}
	return keys
}

// concern knows every table of a gateway: one that it forgets would hold back rows of all VRFs.
func TestEveryTableHasItsConcern(t *testing.T) {
	b := newBench()
	stages := map[any]stage{} // of the tables themselves, which come after their early parts
	for _, e := range order {
		stages[e.Key()] = e.Stage(b.Tables)
	}
	for table, s := range stages {
		if b.concern(s).all {
			t.Errorf("%T: concern in behind.go has no case of it", table)
		}
	}
}
