package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/reason"
)

const reasonsIntro = `# Reasons

What the word in the column REASON means, and what to do. A reason is one fixed word for the state of an object, a component or a
route. Reasons of dropped packets are in
[drop-reasons.md](drop-reasons.md).
`

const objectsIntro = `
## Of objects

In ` + "`sluicectl status`" + `, in the log, and as the label ` + "`reason`" + ` of ` + "`sluice_objects`" + ` and ` + "`sluice_object_errors_total`" + `.
A withheld object is not exposed on purpose: nothing is broken. An error that cuts tenants raises the alert
[SluiceTenantsCut](../alerts.md#sluicetenantscut).

| reason | kinds of object | state | what it means | what to do |
| --- | --- | --- | --- | --- |
`

const conditionsIntro = `
## Of components

In ` + "`sluicectl status`" + ` and the log; ` + "`sluice_component_ready`" + ` is 1 when the component is ready.

| reason | component | state | what it means | what to do |
| --- | --- | --- | --- | --- |
`

const routesIntro = `
## Of routes that are not imported

In ` + "`sluicectl explain`" + `, ` + "`sluicectl bgp routes`" + `, and as the label ` + "`reason`" + ` of ` + "`sluice_bgp_rejected_routes_total`" + `.

| reason | what it means | what to do |
| --- | --- | --- |
`

const underlayIntro = `
## Of routes of the underlay that are not installed

In ` + "`sluicectl underlay`" + `, and as the label ` + "`reason`" + ` of ` + "`sluice_underlay_refused_routes`" + `.

| reason | what it means | what to do |
| --- | --- | --- |
`

const pathsIntro = `
## Of the path of a VRF

In ` + "`sluicectl vrf list`" + ` and the log: why the VRF is on its path.

| reason | what it means | what to do |
| --- | --- | --- |
`

const vipsIntro = `
## Of the path of a VIP

In ` + "`sluicectl lb list`" + `: why OVN or eBPF balances the VIP.

| reason | what it means | what to do |
| --- | --- | --- |
`

// reasonsPage writes the page of pkg/reason, and fails when a package in dirs gives
// a reason as a word of its own, or none gives one of the list.
func reasonsPage(w *bytes.Buffer, dirs []string) error {
	given, err := givenReasons(dirs)
	if err != nil {
		return err
	}
	names, err := reasonNames(filepath.Join(dirs[0], "*.go"))
	if err != nil {
		return err
	}
	explained := map[string]bool{}
	w.WriteString(reasonsIntro)
	for _, part := range []struct {
		intro   string
		entries []reason.Entry
	}{{objectsIntro, reason.Objects()}, {conditionsIntro, reason.Conditions()}, {routesIntro, reason.Routes()}, {underlayIntro, reason.Underlay()}, {pathsIntro, reason.Paths()}, {vipsIntro, reason.VIPs()}} {
		w.WriteString(part.intro)
		for _, e := range part.entries {
			explained[e.Word] = true
			if e.Means == "" || e.Act == "" {
				return fmt.Errorf("pkg/reason says nothing of %s", e.Word)
			}
			fmt.Fprintf(w, "| `%s` |", e.Word)
			if len(e.Of) > 0 {
				state := e.State
				if slices.Contains(reason.Cutting(), e.Word) && state == "error" {
					state += ", cuts tenants"
				}
				fmt.Fprintf(w, " %s | %s |", strings.Join(e.Of, ", "), state)
			}
			fmt.Fprintf(w, " %s | %s |\n", e.Means, e.Act)
		}
	}
	for name, word := range names {
		switch {
		case !explained[word]:
			return fmt.Errorf("reason.%s is in no list of pkg/reason", name)
		case !given[name]:
			return fmt.Errorf("reason.%s is given by none of %v", name, dirs[1:])
		}
	}
	return nil
}

// reasonNames finds the constants of pkg/reason: their words by their names.
func reasonNames(pattern string) (map[string]string, error) {
	out := map[string]string{}
	err := eachNode(pattern, func(n ast.Node, _ token.Position) error {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if ok && v.Names[0].IsExported() {
					out[v.Names[0].Name] = literal(v.Values[0])
				}
			}
		}
		return nil
	})
	return out, err
}

// givenReasons finds the constants of pkg/reason that packages use. A literal in
// the place of a reason is an error.
func givenReasons(dirs []string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, dir := range dirs[1:] {
		err := eachNode(filepath.Join(dir, "*.go"), func(n ast.Node, at token.Position) error {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "reason" {
					out[s.Sel.Name] = true
				}
			}
			if word := ownReason(n); word != "" {
				return fmt.Errorf("%s: the reason %q is to be a constant of pkg/reason", at, word)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ownReason is the literal that a node gives as a reason, or nothing.
func ownReason(n ast.Node) string {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if k, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(k.Name, "reason") {
			return literal(n.Value)
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			name = f.Sel.Name
		case *ast.Ident:
			name = f.Name
		}
		// SetCondition(name, ready, reason, detail), fail and note(kind, name, reason, …), refuse(reason, err)
		switch at := map[string]int{"SetCondition": 3, "fail": 3, "note": 3, "refuse": 1}[name]; {
		case at == 3 && len(n.Args) == 4:
			return literal(n.Args[2])
		case at == 1 && len(n.Args) == 2:
			return literal(n.Args[0])
		}
	}
	return ""
}

// sources lists the files of a pattern; with "/..." before its last element those of all folders below too.
func sources(pattern string) (files []string, err error) {
	dir, below := strings.CutSuffix(filepath.Dir(pattern), "/...")
	if !below {
		return filepath.Glob(pattern)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ok, err := filepath.Match(filepath.Base(pattern), filepath.Base(path)); !ok {
			return err
		}
		files = append(files, path)
		return nil
	})
	return files, err
}

// eachNode calls a function for each node of a package's files, without tests.
func eachNode(pattern string, f func(ast.Node, token.Position) error) error {
	files, err := sources(pattern)
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil && err == nil {
				err = f(n, set.Position(n.Pos()))
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
