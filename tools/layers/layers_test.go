package main

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestImportRules(t *testing.T) {
	for _, tc := range []struct {
		path, imp string
		test      bool // a test imports it
		allowed   bool
	}{
		{path: "controlplane/evpn", imp: module + "dataplane/ebpf"},
		{path: "dataplane/ebpf", imp: module + "controlplane/evpn"},
		{path: "dataplane/ebpf", imp: module + "controlplane/evpn", test: true},
		{path: "cmd/sluiced", imp: module + "dataplane/ebpf", allowed: true},
		{path: "controlplane/evpn", imp: module + "cmd/sluiced/internal/settings"},
		{path: "pkg/status", imp: module + "dataplane/ebpf"},
		{path: "pkg/status", imp: module + "pkg/intent", allowed: true},
		{path: "pkg/intent", imp: module + "pkg/status"},
		{path: "pkg/intent", imp: module + "pkg/intent", test: true, allowed: true}, // of package intent_test
		{path: "pkg/intent", imp: "net/netip", allowed: true},
		{path: "pkg/intent", imp: strings.TrimSuffix(module, "/")},
		{path: ".", imp: module + "pkg/intent"},
		{path: "cmd/sluiced", imp: strings.TrimSuffix(module, "/"), allowed: true},

		{path: "pkg/wanted", imp: module + "pkg/intent", allowed: true},
		{path: "pkg/wanted", imp: module + "pkg/status"},
		{path: "pkg/wanted", imp: module + "pkg/status", test: true},
		{path: "pkg/configfile", imp: module + "pkg/config"},
		{path: "pkg/logging", imp: module + "pkg/config"},
		{path: "pkg/logging", imp: module + "pkg/config/neutron", test: true},
		{path: "pkg/logging", imp: module + "pkg/tables"},
		{path: "pkg/logging", imp: module + "pkg/configfile", allowed: true},
		{path: "pkg/config", imp: module + "pkg/configfile", allowed: true},
		{path: "pkg/serve", imp: module + "pkg/config"},
		{path: "pkg/serve", imp: module + "pkg/config", test: true},
		{path: "pkg/graceful", imp: module + "pkg/config"},
		{path: "pkg/heap", imp: module + "pkg/config"},
		{path: "pkg/crash", imp: module + "pkg/config"},
		{path: "pkg/metrics/nodemetrics", imp: module + "pkg/tables"},
		{path: "pkg/status", imp: module + "pkg/tables"},
		{path: "pkg/admin", imp: module + "pkg/config"},
		{path: "pkg/output", imp: module + "pkg/config/neutron"},
		{path: "pkg/output", imp: module + "pkg/status", allowed: true},
		{path: "pkg/tables", imp: module + "pkg/config", allowed: true},

		{path: "controlplane/ovn", imp: module + "controlplane/ovn/match", allowed: true},
		{path: "controlplane/ovn", imp: module + "controlplane/ovn/follow"},
		{path: "controlplane/ovn", imp: module + "controlplane/loadbalancer"},
		{path: "controlplane/ovn", imp: module + "controlplane/acl", test: true},
		{path: "controlplane/ovn", imp: module + "pkg/ovsdb", allowed: true},
		{path: "controlplane/ovn/match", imp: module + "controlplane/acl"},
		{path: "controlplane/ovn/follow", imp: module + "controlplane/ovn", allowed: true},
		{path: "controlplane/ovn/follow", imp: module + "controlplane/evpn"},

		{path: "controlplane/exposure", imp: module + "controlplane/evpn"},
		{path: "controlplane/tapbalancing", imp: module + "controlplane/evpn"},
		{path: "controlplane/tapbalancing", imp: module + "controlplane/evpn", test: true, allowed: true},
		{path: "controlplane/ovnroutes", imp: module + "controlplane/evpn/keys"},
		{path: "controlplane/evpn", imp: module + "controlplane/evpn/keys", allowed: true},
		{path: "controlplane/evpn/keys", imp: module + "controlplane/exposure"},
		{path: "controlplane/evpn", imp: module + "controlplane/bgp"},
		{path: "controlplane/evpn", imp: module + "controlplane/vrfindex"},
		{path: "controlplane/evpn", imp: module + "controlplane/ovn", allowed: true},
		{path: "controlplane/evpn", imp: module + "controlplane/ovn/match", allowed: true},
		{path: "controlplane/metadata", imp: module + "controlplane/vmports", allowed: true},
		{path: "controlplane/tapbalancing", imp: module + "controlplane/acl", allowed: true},
		{path: "controlplane/tapbalancing", imp: module + "controlplane/loadbalancer", allowed: true},
		{path: "controlplane/loadbalancer", imp: module + "controlplane/evpn"},
		{path: "controlplane/bgp", imp: module + "controlplane/ovnroutes"},
		{path: "controlplane/bgp", imp: module + "controlplane/bfd", allowed: true},
		{path: "cmd/sluiced/internal/translation", imp: module + "controlplane/evpn", allowed: true},

		{path: "controlplane/bgp", imp: "github.com/osrg/gobgp/v3/api", allowed: true},
		{path: "controlplane/evpn", imp: "github.com/osrg/gobgp/v3/api"},
		{path: "dataplane/kernel", imp: "github.com/vishvananda/netlink", allowed: true},
		{path: "cmd/sluiced", imp: "github.com/vishvananda/netlink/nl"},
		{path: "test/bpf", imp: "github.com/cilium/ebpf", test: true, allowed: true},
		{path: "controlplane/ovn", imp: "github.com/ovn-org/libovsdb/ovsdb"},
		{path: "cmd/sluice-lab", imp: module + "test/lab", allowed: true},
		{path: "cmd/sluiced", imp: module + "test/lab"},
		{path: "cmd/sluiced", imp: module + "test/lab", test: true, allowed: true},
		{path: "test/evpn", imp: module + "test/lab", allowed: true},
		{path: "dataplane/ebpf", imp: "github.com/gopacket/gopacket", test: true, allowed: true},
		{path: "dataplane/ebpf", imp: "github.com/gopacket/gopacket/layers"},
	} {
		if got := importProblem(tc.path, tc.imp, tc.test); (got == "") != tc.allowed {
			t.Errorf("%s imports %s: %q", tc.path, tc.imp, got)
		}
	}
}

// The rules are asked of what go list tells of a module: of all its packages, tests, and files
// that only some builds have.
func TestPackages(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":                            "module " + strings.TrimSuffix(module, "/") + "\n\ngo 1.24\n",
		"pkg/status/status.go":              "package status\n",
		"pkg/config/config.go":              "package config\n",
		"pkg/intent/intent.go":              "package intent\n\nimport _ \"" + module + "pkg/status\"\n",
		"pkg/heap/heap.go":                  "package heap\n",
		"pkg/heap/heap_test.go":             "package heap_test\n\nimport _ \"" + module + "pkg/config\"\n",
		"pkg/crash/crash.go":                "package crash\n",
		"pkg/crash/crash_test.go":           "//go:build guest\n\npackage crash\n\nimport _ \"" + module + "pkg/config\"\n",
		"controlplane/rest/rest.go":         "package rest\n",
		"pkg/status/uses/uses.go":           "package uses\n\nimport _ \"" + module + "controlplane/rest\"\n",
		"cmd/sluiced/main.go":               "package main\n\nimport _ \"" + module + "pkg/status/uses\"\n\nfunc main() {}\n",
		"controlplane/evpn/evpn.go":         "package evpn\n",
		"controlplane/exposure/exposure.go": "package exposure\n\nimport _ \"" + module + "controlplane/evpn\"\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := packages(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	checkImports(all, r)
	want := []string{
		"cmd/sluiced has controlplane/rest in it", "controlplane/exposure imports controlplane/evpn", "pkg/crash imports pkg/config",
		"pkg/heap imports pkg/config", "pkg/intent imports pkg/status", "pkg/status/uses imports controlplane/rest",
	}
	if len(r.problems) != len(want) {
		t.Fatalf("%q, want %q", r.problems, want)
	}
	for i, p := range r.problems {
		if !strings.HasPrefix(p, want[i]+":") {
			t.Errorf("%q, want %q", p, want[i])
		}
	}
}

func TestFileRules(t *testing.T) {
	note := "TO" + "DO"
	for name, tc := range map[string]struct{ file, text, want string }{
		"clean":     {"pkg/a/a.go", "// Package a is.\npackage a\n", ""},
		"note":      {"pkg/a/a.go", "// Package a is.\npackage a\n\n// " + note + ": more\n", "pkg/a/a.go:4: " + note},
		"note in C": {"bpf/a.bpf.c", "/* " + note + " */\n", "bpf/a.bpf.c:1: " + note},
		"no doc":    {"pkg/a/a.go", "package a\n", "pkg/a: the package has no comment"},
		"vague":     {"pkg/util/a.go", "// Package util is.\npackage util\n", "package util: name it"},
		"skip":      {"pkg/a/a_test.go", "package a\nfunc TestX(t *testing.T) {\n\tt.Skip()\n}\n", "pkg/a/a_test.go:3: t.Skip"},
		"fuzz skip": {"pkg/a/a_test.go", "package a\nfunc FuzzX(f *testing.F) {\n\tf.Fuzz(func(t *testing.T) { t.Skip() })\n}\n", ""},
		"global":    {"pkg/a/a.go", "// Package a is.\npackage a\nfunc x() { slog.Info(\"x\") }\n", "slog.Info uses the global"},
		"in build":  {"pkg/build/a.go", "// Package build is.\npackage build\n\n// " + note + ": more\n", "pkg/build/a.go:4: " + note},
		"built":     {"build/a.go", "package build\n\n// " + note + ": more\n", ""},
		"start":     {"pkg/a/a.go", "// Package a is.\npackage a\nfunc x() { os.StartProcess(\"x\", nil, nil) }\n", "start programs by os/exec"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, tc.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			r := &report{}
			if err := check(root, r); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(r.problems, "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLinkRules(t *testing.T) {
	linked := []string{"fmt", module + "pkg/config", module + "pkg/configfile", module + "controlplane/octavia/api"}
	for program, want := range map[string]string{
		"cmd/sluiced":           "cmd/sluiced has controlplane/octavia/api in it",
		"cmd/sluicectl":         "cmd/sluicectl has controlplane/octavia/api in it",
		"cmd/sluice-controller": "cmd/sluice-controller has pkg/config in it",
	} {
		if got := linkProblems(program, linked); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %q", program, got)
		}
	}
}

func TestSizes(t *testing.T) {
	r := &report{}
	all := sizes{}
	for file, lines := range map[string]int{
		"cmd/sluiced/main.go": 151, "cmd/sluiced/daemon.go": 150, "pkg/long/a.go": 401, "pkg/long/b.go": 400, "pkg/wide/a.go": 400, "controlplane/bgp/a.go": 400,
	} {
		all.file(file, lines, r)
	}
	all["cmd/sluiced"], all["pkg/wide"], all["controlplane/bgp"] = 1501, maxPackageLines+1, ceilings["controlplane/bgp"]+1
	all["controlplane/evpn"] = ceilings["controlplane/evpn"] / 2
	all.packages(r)
	want(t, r, "cmd/sluiced/main.go has 151 lines", "pkg/long/a.go has 401 lines", "package cmd/sluiced has 1501 lines", "package pkg/wide has 3001 lines",
		"package controlplane/bgp has", "package controlplane/evpn has 2025 lines: lower its ceiling")
}

func TestWhatRoomsHandOver(t *testing.T) {
	const src = `package role

// New takes too much.
func New(a, b, c int, d string, e, f, g, h bool) {}

// NewSmall does not.
func NewSmall(a, b, c int, d string, e, f, g bool) {}

// Wide has too many methods.
type Wide interface{ A(); B(); C(); D(); E(); F() }

// Narrow has not.
type Narrow interface{ A(); B(); C(); D(); E() }

// Sum hides how many it has.
type Sum interface{ Narrow; io.Closer }

// Number is a constraint.
type Number interface{ ~int | ~uint }

// Key is one, too.
type Key interface{ comparable; A() }

// Nested has its methods in others.
type Nested interface{ (Narrow); interface{ F() } }

// Attach is handed one that has no name.
func Attach(interface{ A(); B(); C(); D(); E(); F() }) {}
`
	for path, problems := range map[string][]string{"cmd/sluiced/internal/role/a.go": {"New takes 8 things", "interface Wide has 6 methods", "interface Sum embeds another", "interface Nested embeds another", "interface without a name has 6 methods"}, "pkg/role/a.go": nil} {
		r := &report{}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkHanded(fset, f, path, r)
		want(t, r, problems...)
	}
}

func TestWords(t *testing.T) {
	const src = "package machines\n\ntype Front struct{}\n\ntype VMFront int\n\ntype front int\n\ntype Frontier int\n"
	for path, problems := range map[string][]string{
		"pkg/x/ways.go":       {"ways is not a word", "machines is not a word", "type Front: Front is not a word", "type VMFront: Front is not a word"},
		"cmd/kept/main.go":    {"kept is not a word", "machines is not a word", "type Front: Front is not a word", "type VMFront: Front is not a word"},
		"dataplane/x/ways.go": nil, "pkg/x/ways_test.go": nil,
	} {
		r := &report{}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkWords(fset, f, path, r)
		want(t, r, problems...)
	}
	r, names := &report{}, files{}
	for _, f := range []string{"pkg/a/moves.go", "pkg/b/moves.go", "pkg/a/taps.go", "dataplane/taps.go", "pkg/a/b.go", "pkg/b/b.go"} {
		names.file(f)
	}
	names.twice(r)
	want(t, r, "pkg/a/moves.go, pkg/b/moves.go: moves names one file")
}

func TestPicture(t *testing.T) {
	const page = "```\nmain -> role, taps\nrole -> gateway\ntaps/metadata -> taps\ngone -> taps\ngateway -> gateway/paths\n```\n"
	room := func(path string, imports ...string) pkg {
		p := pkg{Path: path, Imports: []string{"fmt", module + rooms + "settings"}}
		for _, imp := range imports {
			p.Imports = append(p.Imports, module+rooms+imp)
		}
		return p
	}
	r := &report{}
	checkPicture(page, []pkg{
		room("cmd/sluiced", "taps", "role"), room(rooms+"role", "gateway", "taps"), room(rooms + "taps"), room(rooms+"taps/metadata", "taps"),
		room(rooms+"gateway", "gateway/paths"), room(rooms+"gateway/paths", "gateway"), room("pkg/loop"), room("cmd/sluiced/heap"),
		room(rooms+"taps", "role"), // in the build with another tag
	}, r)
	want(t, r, "cmd/sluiced/heap: parts of sluiced are below", "taps imports [role], and the picture says []", "role imports [gateway taps], and the picture says [gateway]", "gateway/paths imports [gateway], and the picture says []",
		"gateway/paths imports its parent", "the picture has gone")
	r = &report{}
	checkPicture("no picture", nil, r)
	want(t, r, "no picture of who imports whom")
}

func TestListed(t *testing.T) {
	r := &report{}
	checkListed("| rows | `pkg/wanted`, `controlplane/octavia` and below |", []pkg{
		{Path: "."}, {Path: "pkg/wanted"}, {Path: "controlplane/octavia/network"}, {Path: "pkg/want"}, {Path: "tools/layers"},
	}, r)
	want(t, r, "no line of the table has pkg/want", "no line of the table has tools/layers")
}

func TestFollowed(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "pkg/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "pkg/x/x.go"), []byte("package x\n\nfunc (t *Table[K, V]) Pass() {}\n\nfunc (r Rows) Apply(int) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page := "`pkg/x.Not.Here`\n## A change, followed through\n`pkg/x.Table.Pass` `pkg/x.Rows.Apply` `pkg/x.Rows.Gone`\n"
	r := &report{}
	if err := checkFollowed(root, page, r); err != nil {
		t.Fatal(err)
	}
	want(t, r, "pkg/x has no method Gone of Rows")
	r = &report{}
	if err := checkFollowed(root, "nothing", r); err != nil {
		t.Fatal(err)
	}
	want(t, r, "no functions in")
}

// ARCHITECTURE.md cannot be left out.
func TestArchitectureIsThere(t *testing.T) {
	if err := checkArchitecture(t.TempDir(), nil, &report{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a tree without ARCHITECTURE.md: %v", err)
	}
}

// tools/lint.sh runs this command again when one of the files changes that it reads.
func TestLintHash(t *testing.T) {
	text, err := os.ReadFile("../lint.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "hash=$(tree_hash ")
	args, _, _ := strings.Cut(rest, ")")
	for _, file := range []string{"'*.go'", "'*.c'", "'*.h'", "'*.sh'", "ARCHITECTURE.md"} {
		if !slices.Contains(strings.Fields(args), file) {
			t.Errorf("%s is not in the hash: %s", file, args)
		}
	}
}

// want tells whether the problems are these, in any order, by the words that they have.
func want(t *testing.T, r *report, words ...string) {
	t.Helper()
	if len(r.problems) != len(words) {
		t.Errorf("%d problems, want %d: %q", len(r.problems), len(words), r.problems)
	}
	for _, w := range words {
		if !slices.ContainsFunc(r.problems, func(p string) bool { return strings.Contains(p, w) }) {
			t.Errorf("no %q in %q", w, r.problems)
		}
	}
}
