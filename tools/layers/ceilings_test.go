package main

import (
	"errors"
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
	src, err := os.ReadFile("sizes.go")
	if err != nil {
		t.Fatal(err)
	}
	now, err := parseCeilings(string(src))
	if err != nil {
		t.Fatal(err)
	}
	read := maps.Clone(ceilings)
	maps.Copy(read, wiring)
	if !maps.Equal(now, read) {
		t.Fatalf("read of sizes.go: %v, want %v", now, read)
	}
	if _, err := os.Stat("../../.git"); errors.Is(err, os.ErrNotExist) {
		t.Log("a source archive has no history")
		return
	}
	commits := strings.Fields(git(t, "log", "--diff-filter=AM", "--format=%H", "--", "sizes.go"))
	if len(commits) == 0 {
		t.Error("no commit has sizes.go")
	}
	for _, commit := range commits {
		before, err := parseCeilings(git(t, "show", commit+":./sizes.go"))
		if errors.Is(err, errNoCeilings) { // the list is younger
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", commit, err)
		}
		for _, raised := range raisedCeilings(before, now) {
			t.Errorf("since %.8s: %s", commit, raised)
		}
	}
}

// git runs here, whatever repository a hook is of that runs the test.
func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

var errNoCeilings = errors.New("sizes.go has no variable ceilings")

// parseCeilings reads the variables ceilings and wiring of a sizes.go.
func parseCeilings(src string) (map[string]int, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "sizes.go", src, 0)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	err = errNoCeilings
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "ceilings" && v.Names[0].Name != "wiring" {
			return true
		}
		if errors.Is(err, errNoCeilings) && v.Names[0].Name == "ceilings" {
			err = nil
		}
		list, ok := v.Values[0].(*ast.CompositeLit)
		if !ok {
			err = fmt.Errorf("%s is no list", v.Names[0].Name)
			return false
		}
		for _, e := range list.Elts {
			var key string
			var lines int
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				key, lines = literal(kv.Key, strconv.Unquote), literal(kv.Value, strconv.Atoi)
			}
			if key == "" || lines == 0 {
				err = fmt.Errorf("a row of %s is no path and number of lines", v.Names[0].Name)
				return false
			}
			out[key] = lines
		}
		return false
	})
	return out, err
}

// literal reads a literal; the zero value: it is none.
func literal[T any](e ast.Expr, read func(string) (T, error)) (out T) {
	if l, ok := e.(*ast.BasicLit); ok {
		out, _ = read(l.Value)
	}
	return out
}

// raisedCeilings are the ceilings that are higher now than before. A new one has to be what others gave up,
// as after a rename or a split.
func raisedCeilings(before, now map[string]int) (out []string) {
	added := false
	for _, dir := range slices.Sorted(maps.Keys(now)) {
		most, had := before[dir]
		added = added || !had
		if had && now[dir] > most {
			out = append(out, fmt.Sprintf("the ceiling of %s is %d, and was %d: split the package by what it holds", dir, now[dir], most))
		}
	}
	if all, was := sum(now), sum(before); added && all > was {
		out = append(out, fmt.Sprintf("there are more ceilings, of %d lines together, and it was %d: split the new package by what it holds", all, was))
	}
	return out
}

func sum(ceilings map[string]int) (lines int) {
	for _, n := range ceilings {
		lines += n
	}
	return lines
}

func TestRaisedCeilings(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now map[string]int
		want        string
	}{
		"falls":             {map[string]int{"a": 4000}, map[string]int{"a": 3900}, ""},
		"raised":            {map[string]int{"a": 4000, "b": 4000}, map[string]int{"a": 4001, "b": 3900}, "the ceiling of a is 4001, and was 4000"},
		"new":               {map[string]int{"a": 4000}, map[string]int{"a": 4000, "b": 3100}, "there are more ceilings, of 7100 lines"},
		"renamed":           {map[string]int{"a": 4000}, map[string]int{"b": 4000}, ""},
		"renamed and grown": {map[string]int{"a": 4000}, map[string]int{"b": 4100}, "there are more ceilings, of 4100 lines"},
		"one for two":       {map[string]int{"a": 8900}, map[string]int{"b": 8900, "c": 8900}, "there are more ceilings"},
		"split":             {map[string]int{"a": 8900}, map[string]int{"a": 4500, "a/x": 4400}, ""},
		"gone":              {map[string]int{"a": 4000}, nil, ""},
	} {
		if got := strings.Join(raisedCeilings(tt.before, tt.now), "; "); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestParseCeilings(t *testing.T) {
	for src, want := range map[string]string{
		"var ceilings = map[string]int{\n\"a\": 4000,\n}\nvar wiring = map[string]int{\"b\": 1500}": "map[a:4000 b:1500] <nil>",
		"var limits = map[string]int{\"a\": 4000}":                                                  "map[] " + errNoCeilings.Error(),
		"var ceilings = map[string]int{\"a\": 2 * 2000}":                                            "map[] a row of ceilings is no path and number of lines",
		"var ceilings = other": "map[] ceilings is no list",
	} {
		if got, err := parseCeilings("package main\n\n" + src); fmt.Sprint(got, err) != want {
			t.Errorf("%s: %v %v, want %s", src, got, err, want)
		}
	}
}
