package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type report struct{ problems, notes []string }

func (r *report) problem(pos token.Position, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d: %s", pos.Filename, pos.Line, fmt.Sprintf(format, args...)))
}

var (
	// The words are put together so that this file does not hold them.
	noteWord  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	generated = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)
)

// seen is what is known of the tree when all of its files were looked at.
type seen struct {
	documented map[string]bool // packages, by their directories
	sizes      sizes
	names      files
}

func check(root string, r *report) error {
	all := seen{map[string]bool{}, sizes{}, files{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || rel == "bin" || rel == "build") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go":
			return checkGo(path, rel, r, all)
		case ".c", ".h", ".sh":
			return checkText(path, rel, r)
		}
		return nil
	})
	var dirs []string
	for dir, ok := range all.documented {
		if !ok {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		r.problems = append(r.problems, dir+": the package has no comment; write its doc.go")
	}
	all.sizes.packages(r)
	all.names.twice(r)
	return err
}

func checkText(path, rel string, r *report) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	n := 0
	for lines.Scan() {
		n++
		if w := noteWord.FindString(lines.Text()); w != "" {
			r.problem(token.Position{Filename: rel, Line: n}, "%s: do it or open an issue", w)
		}
	}
	if n > maxFileLines {
		r.notes = append(r.notes, fmt.Sprintf("%s has %d lines", rel, n))
	}
	return lines.Err()
}

func checkGo(path, rel string, r *report, all seen) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, src, parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(rel, "_test.go")
	if dir := filepath.ToSlash(filepath.Dir(rel)); !test {
		all.documented[dir] = all.documented[dir] || f.Doc != nil
		if vague[f.Name.Name] {
			r.problem(fset.Position(f.Name.Pos()), "package %s: name it after what it holds", f.Name.Name)
		}
	}
	if isGenerated(f) {
		return nil
	}
	checkComments(fset, f, r)
	checkFunctions(fset, f, rel, r)
	checkHanded(fset, f, rel, r)
	checkWords(fset, f, rel, r)
	switch n := fset.File(f.Pos()).LineCount(); {
	case !test:
		all.sizes.file(rel, n, r)
		all.names.file(rel)
	case n > maxFileLines:
		r.notes = append(r.notes, fmt.Sprintf("%s has %d lines", rel, n))
	}
	return nil
}

func isGenerated(f *ast.File) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if c.Pos() < f.Package && generated.MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

func checkComments(fset *token.FileSet, f *ast.File, r *report) {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if w := noteWord.FindString(c.Text); w != "" {
				r.problem(fset.Position(c.Pos()), "%s: do it or open an issue", w)
			}
		}
	}
}

func checkFunctions(fset *token.FileSet, f *ast.File, rel string, r *report) {
	test := strings.HasSuffix(rel, "_test.go")
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from, to := fset.Position(fn.Pos()), fset.Position(fn.End())
		if n := to.Line - from.Line + 1; n > maxFunctionLines && !test {
			r.notes = append(r.notes, fmt.Sprintf("%s:%d: %s has %d lines", rel, from.Line, fn.Name.Name, n))
		}
		// A fuzz target may turn away an input; that is no skipped test.
		fuzz := test && strings.HasPrefix(fn.Name.Name, "Fuzz")
		ast.Inspect(fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			checkCall(fset.Position(call.Pos()), sel, test && !fuzz, rel, r)
			return true
		})
	}
}

func checkCall(pos token.Position, sel *ast.SelectorExpr, test bool, rel string, r *report) {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	switch name := sel.Sel.Name; {
	case test && (name == "Skip" || name == "Skipf" || name == "SkipNow") && len(x.Name) <= 2:
		r.problem(pos, "%s.%s: a test that cannot run fails", x.Name, name)
	case x.Name == "slog" && !strings.HasPrefix(rel, "cmd/") && slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault"}, name):
		r.problem(pos, "slog.%s uses the global logger; take a *slog.Logger", name)
	case (x.Name == "os" || x.Name == "syscall" || x.Name == "unix") && (name == "StartProcess" || name == "ForkExec"):
		r.problem(pos, "%s.%s: start programs by os/exec, from which tools/uncached knows who does", x.Name, name)
	}
}
