package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	// maxPackageLines is of hand-written code without tests.
	maxPackageLines = 3000
	maxWiringLines  = 150
	// maxParameters and maxMethods are of constructors and interfaces of rooms.
	maxParameters = 7
	maxMethods    = 5
)

// ceilings are the packages that are larger, and the files, with how large they may be. They may
// only fall (TestCeilingsFall).
var ceilings = map[string]int{
	"controlplane/bgp":  6300,
	"controlplane/evpn": 4050,
	"controlplane/ovn":  5950,
	"dataplane/ebpf":    8900,
	"dataplane/kernel":  5950,
	"pkg/ovsdb":         3700,
	"test/lab":          5850,
}

// wiring are the packages that only join others: no file of theirs is above maxWiringLines.
var wiring = map[string]int{"cmd/sluiced": 1500}

// sizes are the lines of packages, without generated files and tests.
type sizes map[string]int

// file takes note of a file and finds what is too long in it.
func (s sizes) file(rel string, lines int, r *report) {
	dir := path.Dir(rel)
	s[dir] += lines
	switch most, joins := wiring[dir]; {
	case joins && lines > maxWiringLines:
		r.problems = append(r.problems, fmt.Sprintf("%s has %d lines: %s is wiring (%d lines in all, no file above %d)", rel, lines, dir, most, maxWiringLines))
	case lines > max(maxFileLines, ceilings[rel]):
		r.problems = append(r.problems, fmt.Sprintf("%s has %d lines, more than %d: split it by what it holds", rel, lines, max(maxFileLines, ceilings[rel])))
	case lines < ceilings[rel]:
		r.problems = append(r.problems, fmt.Sprintf("%s has %d lines: lower its ceiling of %d", rel, lines, ceilings[rel]))
	}
}

// packages finds the packages that are too large.
func (s sizes) packages(r *report) {
	for _, dir := range slices.Sorted(maps.Keys(s)) {
		most := maxPackageLines
		if ceiling, has := ceilings[dir]; has {
			most = ceiling
		}
		if ceiling, has := wiring[dir]; has {
			most = ceiling
		}
		if s[dir] > most {
			r.problems = append(r.problems, fmt.Sprintf("package %s has %d lines, more than %d: split it by what it holds", dir, s[dir], most))
		}
		if ceiling, has := ceilings[dir]; has && s[dir] < ceiling*19/20 {
			r.problems = append(r.problems, fmt.Sprintf("package %s has %d lines: lower its ceiling of %d", dir, s[dir], ceiling))
		}
	}
}

// checkHanded finds constructors that take too much, and interfaces with too many methods, among the
// rooms of sluiced: either is a heap behind a façade.
func checkHanded(fset *token.FileSet, f *ast.File, rel string, r *report) {
	if !strings.HasPrefix(rel, rooms) || strings.HasSuffix(rel, "_test.go") {
		return
	}
	names := map[ast.Expr]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := n.Name.Name
			if n.Recv == nil && (strings.HasPrefix(name, "New") || name == "Start") && n.Type.Params.NumFields() > maxParameters {
				r.problem(fset.Position(n.Pos()), "%s takes %d things, more than %d", name, n.Type.Params.NumFields(), maxParameters)
			}
		case *ast.TypeSpec:
			names[n.Type] = n.Name.Name
		case *ast.InterfaceType:
			if n.Methods.NumFields() > maxMethods {
				r.problem(fset.Position(n.Pos()), "interface %s has %d methods, more than %d", cmp.Or(names[n], "without a name"), n.Methods.NumFields(), maxMethods)
			}
			if slices.ContainsFunc(n.Methods.List, embeds) {
				r.problem(fset.Position(n.Pos()), "interface %s embeds another: name its methods, which are counted", cmp.Or(names[n], "without a name"))
			}
		}
		return true
	})
}

// embeds tells whether a field of an interface is another interface, and no method or constraint.
func embeds(f *ast.Field) bool {
	switch e := ast.Unparen(f.Type).(type) {
	case *ast.Ident:
		_, predeclared := types.Universe.Lookup(e.Name).(*types.TypeName)
		return len(f.Names) == 0 && (!predeclared || e.Name == "error" || e.Name == "any")
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr, *ast.InterfaceType:
		return len(f.Names) == 0
	}
	return false
}
