package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// hostile is a name as an attacker would write it: sequences that a terminal takes for commands, by
// all kinds of control characters, and a row of its own.
const hostile = "web\x1b]0;owned\x07\x1b[2J\x7f\u009b31m\u0085\u2028\u2029\u202e\u2066\r\v\f\b\nFORGED  ok  yes"

// fill writes hostile into all strings of a value, and one element into each list.
func fill(v reflect.Value, flag bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Bool:
		v.SetBool(flag)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), flag)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), flag)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), flag)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, flag)
		fill(value, flag)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), flag)
			}
		}
	}
}

// harmless checks what a terminal would get.
func harmless(t *testing.T, what, out string) {
	t.Helper()
	for line := range strings.SplitSeq(out, "\n") {
		if i := strings.IndexFunc(line, func(r rune) bool {
			return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		}); i >= 0 {
			t.Errorf("%s: a terminal gets %q", what, line[i:min(len(line), i+20)])
		}
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			t.Errorf("%s: a row is forged: %q", what, line)
		}
	}
}

// answer is a check of all that a command prints of an answer.
func answer[T any](t *testing.T, name string, write func(io.Writer, T) error) {
	t.Helper()
	for _, flag := range []bool{false, true} {
		var v T
		fill(reflect.ValueOf(&v).Elem(), flag)
		for _, format := range output.Formats() {
			var out bytes.Buffer
			o := &options{output: output.Format(format)}
			if err := o.print(&out, v, func(w io.Writer) error { return write(w, v) }); err != nil {
				t.Fatalf("%s, %s: %v", name, format, err)
			}
			harmless(t, name+" "+format, out.String())
			if !strings.Contains(out.String(), "FORGED") && format != "table" {
				t.Errorf("%s, %s: it says nothing of the names:\n%s", name, format, &out)
			}
			faithful(t, name, output.Format(format), v, out.Bytes())
		}
	}
}

// faithful checks that a program reads the very value from what was printed.
func faithful(t *testing.T, name string, format output.Format, value any, out []byte) {
	t.Helper()
	if format == output.People {
		return
	}
	plain, err := json.Marshal(value)
	var want, got any
	if err == nil {
		err = json.Unmarshal(plain, &want)
	}
	if err == nil && format == output.YAML {
		out, err = yaml.YAMLToJSON(out)
	}
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s, %s: another value is read (%v)", name, format, err)
	}
}

// What somebody else has named reaches no terminal as a command, and forges no row: names of OVN's
// rows, device ids, texts of BGP neighbours, errors.
func TestHostileNames(t *testing.T) {
	answer(t, "status", writeStatus)
	answer(t, "problems", writeProblems)
	answer(t, "diff", writeDiff)
	answer(t, "drain", writeDrain)
	answer(t, "drops", func(w io.Writer, d status.Drops) error { return writeDrops(w, d, true) })
	answer(t, "drops --follow", func(w io.Writer, d status.Drop) error { return (&options{output: output.People}).printDrop(w, d) })
	answer(t, "explain", writeExplanation)
	answer(t, "notes", writeNotes)
	answer(t, "bgp neighbors", writeNeighbors)
	answer(t, "bgp routes", writeBGPRoutes)
	answer(t, "lb vms", writeVMs)
	answer(t, "lb show", showVIPs)
	answer(t, "lb list", writeVIPs)
	answer(t, "lb backends", writeBackends)
	answer(t, "lb sessions", writeSessions)
	answer(t, "lb explain", writeVIPExplanation)
	answer(t, "metadata proxy", writeProxy)
	answer(t, "metadata requests", writeRequests)
	answer(t, "metadata ports", writeMetadata)
	answer(t, "metadata explain", writeMetadataSteps)
	answer(t, "route list", writeRoutes)
	answer(t, "trace", writeTrace)
	answer(t, "underlay", writeUnderlay)
	answer(t, "vrf list", writeVRFs)
	answer(t, "vrf show", writeVRF)
	answer(t, "adopt", func(w io.Writer, a status.Adoption) error { return writeAdoption(w, a, true) })
	answer(t, "cleanup", func(w io.Writer, c status.Cleanup) error { return writeCleanup(w, c, true) })
}

// What is printed of variables goes through package output, which cleans it: fmt has constants alone.
func TestPrintsAreClean(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "../sluiced/check.go", "../sluiced/internal/dryrun/*.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, some...)
	}
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			to, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, _ := to.X.(*ast.Ident)
			if from == nil || from.Name != "fmt" && from.Name != "output" || !slices.Contains([]string{"Fprint", "Fprintf", "Fprintln", "Print", "Printf", "Println"}, to.Sel.Name) {
				return true
			}
			calls++
			for _, arg := range call.Args[min(1, len(call.Args)):] {
				if _, constant := arg.(*ast.BasicLit); !constant && from.Name == "fmt" {
					t.Errorf("%s: fmt.%s of a variable: use output.Printf or output.Println", file, to.Sel.Name)
				}
			}
			return true
		})
	}
	if calls < 50 {
		t.Errorf("only %d calls were looked at", calls)
	}
}
