package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// keysOf are a program's keys in map columns of OVN and Open vSwitch: the page's begin and end,
// and its tables.
type keysOf struct {
	intro, end string
	sections   []keySection
}

var keysOfPrograms = map[string]keysOf{
	"sluiced":           {keysIntro, keysExample, keySections},
	"sluice-controller": {controllerKeysIntro, "", controllerKeySections},
}

// keysPage writes the page of what a program reads from map columns of OVN and Open
// vSwitch, or writes there, and fails when the packages in dirs read a key that no row of it
// explains, or no longer read one that a row does.
func keysPage(w *bytes.Buffer, program string, dirs []string) error {
	page, known := keysOfPrograms[program]
	if !known {
		return fmt.Errorf("no keys of %s are known", program)
	}
	read, err := readKeys(dirs)
	if err != nil {
		return err
	}
	explained := map[string]bool{}
	w.WriteString(page.intro)
	for _, s := range page.sections {
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n| key | where | values | without it | what it does | who writes it |\n| --- | --- | --- | --- | --- | --- |\n", s.title, s.text)
		for _, k := range s.keys {
			explained[k.name] = true
			if !read[k.name] {
				return fmt.Errorf("the page of %s explains %s, and %v do not read it", program, k.name, dirs)
			}
			fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s |\n", k.name, k.where, k.values, k.without, k.does, k.writer)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if !explained[name] {
			return fmt.Errorf("%s is read from OVN and the page of %s does not explain it", name, program)
		}
	}
	w.WriteString(page.end)
	return nil
}

// readKeys finds the keys that packages read: string constants named key… and
// option…, and literal keys of ExternalIDs, Options and the methods named external.
func readKeys(dirs []string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, dir := range dirs {
		err := eachNode(filepath.Join(dir, "*.go"), func(n ast.Node, _ token.Position) error {
			if key := keyOf(n); key != "" {
				out[key] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keyOf is the key that a node names, or nothing.
func keyOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if len(n.Names) == 1 && len(n.Values) == 1 && (strings.HasPrefix(n.Names[0].Name, "key") || strings.HasPrefix(n.Names[0].Name, "option")) {
			return literal(n.Values[0])
		}
	case *ast.IndexExpr:
		x := n.X
		if call, ok := x.(*ast.CallExpr); ok {
			x = call.Fun
		}
		if s, ok := x.(*ast.SelectorExpr); ok && slices.Contains([]string{"ExternalIDs", "Options", "external"}, s.Sel.Name) {
			return literal(n.Index)
		}
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "External" && len(n.Args) == 1 {
			return literal(n.Args[0])
		}
	}
	return ""
}

func literal(e ast.Expr) string {
	if b, ok := e.(*ast.BasicLit); ok && b.Kind == token.STRING {
		s, err := strconv.Unquote(b.Value)
		if err == nil {
			return s
		}
	}
	return ""
}
