package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// notWords are words of the glossary's column "not" (CONTRIBUTING.md), as parts of names. What stands
// in the tree before its part of the plan is moved is in oldNames.
var notWords = []string{"machine", "machines", "front", "fronts", "form", "forms", "kept", "ghost", "ways", "hands", "patience"}

// oneFile are words that name one file each, so that one finds it.
var oneFile = []string{"taps", "steering", "linger", "moves", "stage", "guard", "flows"}

// oldNames are the folders whose names change with the packages of the data plane.
var oldNames = []string{"dataplane", "test", "bpf"}

var (
	afterCapitals = regexp.MustCompile(`([A-Z])([A-Z][a-z])`) // VMFront is VM and Front
	wordOf        = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
)

// badWord is a word of a name that the glossary has another one for.
func badWord(name string) string {
	for _, w := range wordOf.FindAllString(afterCapitals.ReplaceAllString(name, "$1 $2"), -1) {
		if slices.Contains(notWords, strings.ToLower(w)) {
			return w
		}
	}
	return ""
}

func old(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return slices.Contains(oldNames, first)
}

// checkWords finds names of files, folders, packages and exported types that the glossary has other words for.
func checkWords(fset *token.FileSet, f *ast.File, rel string, r *report) {
	if old(rel) || strings.HasSuffix(rel, "_test.go") {
		return
	}
	names := strings.Split(strings.TrimSuffix(rel, ".go"), "/")
	if f.Name.Name != path.Base(path.Dir(rel)) {
		names = append(names, f.Name.Name)
	}
	for _, name := range names {
		if w := badWord(name); w != "" {
			r.problems = append(r.problems, fmt.Sprintf("%s: %s is not a word of the glossary", rel, w))
		}
	}
	for _, d := range f.Decls {
		g, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range g.Specs {
			if t, is := spec.(*ast.TypeSpec); is && t.Name.IsExported() {
				if w := badWord(t.Name.Name); w != "" {
					r.problem(fset.Position(t.Pos()), "type %s: %s is not a word of the glossary", t.Name.Name, w)
				}
			}
		}
	}
}

// files are the names of files, to find those that several have.
type files map[string][]string

func (n files) file(rel string) {
	if name := strings.TrimSuffix(path.Base(rel), ".go"); !old(rel) && slices.Contains(oneFile, name) {
		n[name] = append(n[name], rel)
	}
}

func (n files) twice(r *report) {
	for _, name := range oneFile {
		if all := n[name]; len(all) > 1 {
			slices.Sort(all)
			r.problems = append(r.problems, fmt.Sprintf("%s: %s names one file", strings.Join(all, ", "), name))
		}
	}
}
