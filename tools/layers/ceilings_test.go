package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// No ceiling is higher than in any commit before.
func TestCeilingsFall(t *testing.T) {
	if _, err := os.Stat("../../.git"); err != nil {
		t.Log("a source archive has no history")
		return
	}
	for commit := range strings.FieldsSeq(git(t, "log", "--format=%H", "--", "sizes.go")) {
		before := parsed(t, git(t, "show", commit+":./sizes.go"))
		if before == nil { // the list is younger
			break
		}
		for _, raised := range raisedCeilings(before, ceilings) {
			t.Errorf("since %.8s: %s", commit, raised)
		}
	}
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", root}, args...)...).Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

// parsed are the ceilings that a sizes.go has; nil: none.
func parsed(t *testing.T, src string) map[string]int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "sizes.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]int
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "ceilings" {
			return true
		}
		out = map[string]int{}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			kv := e.(*ast.KeyValueExpr)
			key, err := strconv.Unquote(kv.Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if out[key], err = strconv.Atoi(kv.Value.(*ast.BasicLit).Value); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
	return out
}

// raisedCeilings are the ceilings that are higher now than before. A package that had
// none had maxPackageLines; one that takes the place of another, which lost its own, was renamed.
func raisedCeilings(before, after map[string]int) []string {
	var lost []int
	for dir, lines := range before {
		if _, has := after[dir]; !has {
			lost = append(lost, lines)
		}
	}
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(after)) {
		most, had := before[dir]
		if !had {
			most = max(maxPackageLines, slices.Max(append(lost, 0)))
		}
		if after[dir] > most {
			out = append(out, fmt.Sprintf("the ceiling of %s is %d, and was %d: split the package by what it holds", dir, after[dir], most))
		}
	}
	return out
}

func TestRaisedCeilings(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after map[string]int
		want          string
	}{
		"falls":             {map[string]int{"a": 4000}, map[string]int{"a": 3900}, ""},
		"raised":            {map[string]int{"a": 4000}, map[string]int{"a": 4001}, "the ceiling of a is 4001, and was 4000"},
		"new":               {map[string]int{"a": 4000}, map[string]int{"a": 4000, "b": 3100}, "the ceiling of b is 3100, and was 3000"},
		"renamed":           {map[string]int{"a": 4000}, map[string]int{"b": 4000}, ""},
		"renamed and grown": {map[string]int{"a": 4000}, map[string]int{"b": 4100}, "the ceiling of b is 4100, and was 4000"},
		"gone":              {map[string]int{"a": 4000}, nil, ""},
	} {
		if got := strings.Join(raisedCeilings(tt.before, tt.after), "; "); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	src := "package main\n\nvar ceilings = map[string]int{\n\t\"a\": 4000,\n}\n"
	if got := parsed(t, src); !maps.Equal(got, map[string]int{"a": 4000}) {
		t.Errorf("parsed: %v", got)
	}
}
