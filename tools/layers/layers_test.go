package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestImportRules(t *testing.T) {
	for _, tc := range []struct {
		path, imp string
		allowed   bool
	}{
		{"controlplane/evpn/a.go", module + "dataplane/ebpf", false},
		{"dataplane/ebpf/a.go", module + "controlplane/evpn", false},
		{"dataplane/ebpf/a_test.go", module + "controlplane/evpn", false},
		{"cmd/sluiced/main.go", module + "dataplane/ebpf", true},
		{"pkg/status/a.go", module + "dataplane/ebpf", false},
		{"pkg/status/a.go", module + "pkg/intent", true},
		{"pkg/intent/a.go", module + "pkg/status", false},
		{"pkg/configfile/a.go", module + "pkg/config", false},
		{"pkg/logging/a.go", module + "pkg/config", false},
		{"pkg/logging/a_test.go", module + "pkg/config/neutron", false},
		{"pkg/logging/a.go", module + "pkg/tables", false},
		{"pkg/logging/a.go", module + "pkg/configfile", true},
		{"pkg/config/a.go", module + "pkg/configfile", true},
		{"pkg/serve/a.go", module + "pkg/config", false},
		{"pkg/serve/a_test.go", module + "pkg/config", false},
		{"pkg/graceful/a.go", module + "pkg/config", false},
		{"pkg/crash/a.go", module + "pkg/config", false},
		{"pkg/metrics/nodemetrics/a.go", module + "pkg/tables", false},
		{"pkg/status/a.go", module + "pkg/tables", false},
		{"pkg/admin/a.go", module + "pkg/config", false},
		{"pkg/output/a.go", module + "pkg/config/neutron", false},
		{"pkg/output/a.go", module + "pkg/status", true},
		{"pkg/tables/a.go", module + "pkg/config", true},
		{"controlplane/bgp/a.go", "github.com/osrg/gobgp/v3/api", true},
		{"controlplane/evpn/a.go", "github.com/osrg/gobgp/v3/api", false},
		{"dataplane/kernel/a.go", "github.com/vishvananda/netlink", true},
		{"cmd/sluiced/a.go", "github.com/vishvananda/netlink/nl", false},
		{"test/bpf/a_test.go", "github.com/cilium/ebpf", true},
		{"controlplane/ovn/a.go", "github.com/ovn-org/libovsdb/ovsdb", false},
		{"cmd/sluice-lab/main.go", module + "test/lab", true},
		{"cmd/sluiced/main.go", module + "test/lab", false},
		{"dataplane/ebpf/a_test.go", "github.com/gopacket/gopacket", true},
		{"dataplane/ebpf/a.go", "github.com/gopacket/gopacket/layers", false},
	} {
		if got := importProblem(tc.path, tc.imp); (got == "") != tc.allowed {
			t.Errorf("%s imports %s: %q", tc.path, tc.imp, got)
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
		for _, rule := range unlinked {
			if !slices.Contains(rule.programs, program) {
				continue
			}
			if got := linkProblems(program, linked, rule.packages); len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("%s: %q", program, got)
			}
		}
	}
}
