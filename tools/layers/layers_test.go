package main

import (
	"os"
	"path/filepath"
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
