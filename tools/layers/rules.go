package main

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/ovn-sluice/sluice/"

const (
	maxFileLines     = 400
	maxFunctionLines = 60
)

// forbidden says that files below from may not import packages below to.
var forbidden = []struct{ from, to, why string }{
	{"controlplane/", "dataplane/", "the planes meet in pkg/intent"},
	{"dataplane/", "controlplane/", "the planes meet in pkg/intent"},
	{"pkg/", "controlplane/", "pkg is below the planes"},
	{"pkg/", "dataplane/", "pkg is below the planes"},
	{"pkg/", "cmd/", "cmd is only wiring"},
	{"controlplane/", "cmd/", "cmd is only wiring"},
	{"dataplane/", "cmd/", "cmd is only wiring"},
	{"pkg/intent/", "pkg/", "intent is the contract and depends on nothing"},
}

// shared are packages of every program, whatever its configuration and its tables are.
var shared = []string{
	"pkg/admin/", "pkg/configfile/", "pkg/crash/", "pkg/graceful/", "pkg/logging/", "pkg/metrics/", "pkg/output/", "pkg/serve/", "pkg/status/",
}

// ofNode are packages of sluiced, which shared ones may not import.
var ofNode = []string{"pkg/config/", "pkg/tables/"}

// owned says which directories alone may import a library, so that a successor
// of it is one package's change.
var owned = []struct {
	library string
	by      []string
}{
	{"github.com/ovn-org/libovsdb", []string{"pkg/ovsdb/", "tools/ovsdbmodels/"}},
	{"github.com/osrg/gobgp", []string{"controlplane/bgp/"}},
	{"github.com/cilium/ebpf", []string{"dataplane/ebpf/", "test/"}},
	{"github.com/vishvananda/netlink", []string{"dataplane/", "pkg/netns/", "pkg/link/", "test/"}},
	{"github.com/prometheus/", []string{"pkg/metrics/", "pkg/serve/"}},
	{"github.com/grafana/", []string{"tools/dashboard/"}},
	{"github.com/gopacket/gopacket", []string{"test/", "pkg/packet/"}},
}

// vague are names that say nothing of what a package holds.
var vague = map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true}

// importProblem is "" when the file at path (slashes, relative) may import imp.
func importProblem(path, imp string) string {
	if inner, ok := strings.CutPrefix(imp, module); ok {
		inner += "/"
		for _, f := range forbidden {
			if strings.HasPrefix(path, f.from) && strings.HasPrefix(inner, f.to) {
				return fmt.Sprintf("%s may not import %s: %s", f.from, inner, f.why)
			}
		}
		if below(path, shared) && below(inner, ofNode) {
			return fmt.Sprintf("%s may not import %s: other programs use them, too", strings.Join(shared, ", "), inner)
		}
		if strings.HasPrefix(inner, "test/") && !strings.HasPrefix(path, "test/") && !strings.HasPrefix(path, "cmd/sluice-lab/") && !strings.HasSuffix(path, "_test.go") {
			return "only tests and sluice-lab may import " + inner
		}
		return ""
	}
	for _, o := range owned {
		if !strings.HasPrefix(imp, o.library) {
			continue
		}
		if strings.HasSuffix(path, "_test.go") && o.library == "github.com/gopacket/gopacket" {
			return ""
		}
		if below(path, o.by) {
			return ""
		}
		return fmt.Sprintf("only %s may import %s", strings.Join(o.by, ", "), o.library)
	}
	return ""
}

// below tells whether a path is in one of the directories.
func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, dir) })
}
