package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 60
)

// rule says what packages of this repository may not import of it. A pattern is the path of a package
// without the module's, or with /... at its end that of a directory and of all below it; "..." is all.
type rule struct {
	from, to []string
	// unless are exceptions from from, and but from to.
	unless, but []string
	// tests: it holds for tests, too.
	tests bool
	why   string
}

// features translate rows of OVN, each into tables of its own. Packages of one may import each other.
var features = []string{
	"controlplane/evpn/...", "controlplane/exposure/...", "controlplane/metadata/...", "controlplane/tapbalancing/...", "controlplane/ovnroutes/...",
}

var rules = []rule{
	{from: []string{"controlplane/..."}, to: []string{"dataplane/..."}, tests: true, why: "the planes meet in pkg/intent"},
	{from: []string{"dataplane/..."}, to: []string{"controlplane/..."}, tests: true, why: "the planes meet in pkg/intent"},
	{from: []string{"pkg/..."}, to: []string{"controlplane/...", "dataplane/..."}, tests: true, why: "pkg is below the planes"},
	{from: []string{"pkg/...", "controlplane/...", "dataplane/..."}, to: []string{"cmd/..."}, tests: true, why: "cmd is only wiring"},
	{from: []string{"."}, to: []string{"..."}, tests: true, why: "the version depends on nothing"},
	{from: []string{"pkg/intent"}, to: []string{"..."}, tests: true, why: "intent is the contract and depends on nothing"},
	{from: []string{"pkg/wanted"}, to: []string{"..."}, but: []string{"pkg/intent"}, tests: true, why: "wanted knows intent alone"},
	{
		from: []string{
			"pkg/admin/...", "pkg/configfile/...", "pkg/crash/...", "pkg/graceful/...", "pkg/heap/...", "pkg/logging/...", "pkg/metrics/...", "pkg/output/...",
			"pkg/serve/...", "pkg/status/...",
		},
		to: []string{"pkg/config/...", "pkg/tables/..."}, tests: true, why: "other programs use it, too",
	},
	{from: []string{"controlplane/ovn"}, to: []string{"controlplane/..."}, but: []string{"controlplane/ovn/match"}, tests: true, why: "the rows know no feature"},
	{from: []string{"controlplane/ovn/..."}, to: []string{"controlplane/..."}, but: []string{"controlplane/ovn/..."}, tests: true, why: "the rows know no feature"},
	{from: []string{"controlplane/..."}, to: features, why: "features know nothing of each other, and nothing below them does"},
	{
		from: features, to: []string{"controlplane/..."},
		but: []string{"controlplane/ovn/...", "controlplane/loadbalancer", "controlplane/acl", "controlplane/vmports"}, why: "features read rows, and what rows say",
	},
	{from: []string{"..."}, unless: []string{"test/...", "cmd/sluice-lab"}, to: []string{"test/..."}, why: "only tests and sluice-lab may"},
}

// owned says which packages alone may import a library, so that a successor of it is one
// package's change.
var owned = []struct {
	library string
	by      []string
	// tests: any package's tests may.
	tests bool
}{
	{library: "github.com/ovn-org/libovsdb/...", by: []string{"pkg/ovsdb/...", "tools/ovsdbmodels"}},
	{library: "github.com/osrg/gobgp/...", by: []string{"controlplane/bgp/..."}},
	{library: "github.com/cilium/ebpf/...", by: []string{"dataplane/ebpf/...", "test/..."}},
	{library: "github.com/vishvananda/netlink/...", by: []string{"dataplane/...", "pkg/netns", "pkg/link", "test/..."}},
	{library: "github.com/prometheus/...", by: []string{"pkg/metrics/...", "pkg/serve"}},
	{library: "github.com/grafana/...", by: []string{"tools/dashboard"}},
	{library: "github.com/gopacket/gopacket/...", by: []string{"test/...", "pkg/packet"}, tests: true},
}

// unlinked are the packages that programs may not have in them, however they would get there: what only the
// controller needs stays out of the node's programs, and the other way round.
var unlinked = []struct{ programs, packages []string }{
	{
		[]string{"cmd/sluiced", "cmd/sluicectl"},
		[]string{
			"controlplane/octavia/...", "controlplane/openstack/...", "controlplane/neutron/...", "controlplane/identity/...", "controlplane/rest/...",
			"pkg/metrics/controllermetrics",
		},
	},
	{
		[]string{"cmd/sluice-controller"},
		[]string{"dataplane/...", "pkg/config/...", "pkg/tables/...", "controlplane/bgp/...", "controlplane/evpn/...", "controlplane/ovn/..."},
	},
}

// vague are names that say nothing of what a package holds.
var vague = map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true}

// importProblem is "" when a package, or with test its tests, may import imp.
func importProblem(path, imp string, test bool) string {
	to, ours := inner(imp)
	for _, r := range rules {
		if ours && in(path, r.from) && !in(path, r.unless) && in(to, r.to) && !in(to, r.but) && (r.tests || !test) && !together(path, to) {
			return fmt.Sprintf("%s imports %s: %s", path, to, r.why)
		}
	}
	for _, o := range owned {
		if !ours && in(imp, []string{o.library}) && !in(path, o.by) && !(test && o.tests) {
			return fmt.Sprintf("%s imports %s: %s alone may", path, imp, strings.Join(o.by, ", "))
		}
	}
	return ""
}

// together tells whether two packages are one, as that of a test beside it is, or of one feature.
func together(a, b string) bool {
	return a == b || slices.ContainsFunc(features, func(f string) bool { return in(a, []string{f}) && in(b, []string{f}) })
}

// linkProblems are what a program has in it that it may not.
func linkProblems(program string, linked []string) (out []string) {
	for _, rule := range unlinked {
		for _, path := range linked {
			if has, ours := inner(path); ours && slices.Contains(rule.programs, program) && in(has, rule.packages) {
				out = append(out, fmt.Sprintf("%s has %s in it: other programs' packages stay out of it", program, has))
			}
		}
	}
	return out
}

// in tells whether one of the patterns is of a package.
func in(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		dir, below := strings.CutSuffix(p, "/...")
		return p == "..." || path == dir || below && strings.HasPrefix(path, dir+"/")
	})
}
