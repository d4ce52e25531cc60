package tables

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Every table of package intent is in exactly one order, and once in it, but those that only the gateway reads.
func TestEveryTableIsInOneOrder(t *testing.T) {
	in := map[string]int{"relays": 1, "standby": 1, "learners": 1} // Gateway.want and Gateway.patch
	for _, names := range [][]string{namesIn(order), namesIn(clientsOrder), namesIn(metadataOrder), namesIn(underlayOrder)} {
		for _, name := range names {
			in[name]++
		}
	}
	tables := tablesOfIntent(t)
	for _, name := range tables {
		if in[name] != 1 {
			t.Errorf("table %s is in %d orders", name, in[name])
		}
		delete(in, name)
	}
	if len(tables) == 0 || len(in) > 0 {
		t.Errorf("%d tables; in an order and not in package intent: %v", len(tables), in)
	}
}

// tablesOfIntent are the names of the tables that any file of package intent makes.
func tablesOfIntent(t *testing.T) (names []string) {
	files, err := filepath.Glob("../intent/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			table, is := n.(*ast.CompositeLit)
			if !is {
				return true
			}
			of, is := table.Type.(*ast.IndexListExpr)
			if !is {
				return true
			}
			if kind, is := of.X.(*ast.Ident); !is || kind.Name != "Table" {
				return true
			}
			names = append(names, nameOf(table))
			return true
		})
	}
	return names
}

// nameOf is the field Name of a table, which is the first one.
func nameOf(table *ast.CompositeLit) string {
	for i, field := range table.Elts {
		if pair, is := field.(*ast.KeyValueExpr); is {
			if key, is := pair.Key.(*ast.Ident); !is || key.Name != "Name" {
				continue
			}
			field = pair.Value
		} else if i > 0 {
			continue
		}
		if text, is := field.(*ast.BasicLit); is {
			name, _ := strconv.Unquote(text.Value)
			return name
		}
	}
	return ""
}

// namesIn are the tables of an order, without the early parts of some.
func namesIn[O owner](list []entry[O]) (names []string) {
	for _, e := range list {
		if !strings.HasPrefix(reflect.TypeOf(e).Name(), "early[") {
			names = append(names, reflect.ValueOf(e.Key()).Elem().FieldByName("Name").String())
		}
	}
	return names
}

// concern knows every table of a gateway: one that it forgets would hold back rows of all VRFs.
func TestEveryTableHasItsConcern(t *testing.T) {
	b := newBench()
	b.Pipeline.View(func() {
		for _, s := range b.Pipeline.Stages() {
			if b.concern(s).all {
				t.Errorf("table %s: concern in behind.go has no case of it", s.Name())
			}
		}
	})
}
