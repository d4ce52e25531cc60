package main

import (
	"maps"
	"slices"
	"testing"
)

func TestUncached(t *testing.T) {
	packages := []listed{
		{ImportPath: "os/exec", Standard: true},
		// The testing package itself imports it, for fuzzing.
		{ImportPath: "internal/fuzz", Standard: true, Imports: []string{"os/exec"}},
		{ImportPath: "m/server", Imports: []string{"os/exec"}, Deps: []string{"os/exec"}},
		{ImportPath: "m/between", Imports: []string{"m/server"}, Deps: []string{"m/server", "os/exec"}},
		{ImportPath: "m/pure.test", Deps: []string{"m/pure", "internal/fuzz", "os/exec"}},
		// Below a package that a test imports.
		{ImportPath: "m/far.test", Deps: []string{"m/far", "m/between", "m/server", "os/exec"}},
		// In a package's own test, and in one of the package outside.
		{ImportPath: "m/inside [m/inside.test]", Imports: []string{"os/exec"}},
		{ImportPath: "m/inside.test", Deps: []string{"m/inside [m/inside.test]", "os/exec"}},
		{ImportPath: "m/outside_test [m/outside.test]", Imports: []string{"os/exec"}},
		{ImportPath: "m/outside.test", Deps: []string{"m/outside", "m/outside_test [m/outside.test]", "os/exec"}},
		// A library of another module.
		{ImportPath: "library/testscript", Imports: []string{"os/exec"}},
		{ImportPath: "m/script.test", Deps: []string{"m/script", "library/testscript"}},
	}
	got := slices.Sorted(maps.Keys(uncached(packages)))
	if want := []string{"m/far", "m/inside", "m/outside", "m/script"}; !slices.Equal(got, want) {
		t.Errorf("uncached: %v, want %v", got, want)
	}
}

// The packages of this repository that are known to start servers are found, and
// pure ones are not.
func TestUncachedHere(t *testing.T) {
	const module = "github.com/ovn-sluice/sluice/"
	packages, err := list([]string{module + "..."})
	if err != nil {
		t.Fatal(err)
	}
	found := uncached(packages)
	for _, server := range []string{
		"pkg/ovsdb", "controlplane/bgp", "controlplane/bfd", "controlplane/ovn", "dataplane/kernel", "dataplane/ovs",
		"dataplane/metadata/service", "test/evpn", "test/metadataproxy", "test/bench/health",
	} {
		if found[module+server] == nil {
			t.Errorf("%s starts servers and would pass from the cache", server)
		}
	}
	for _, pure := range []string{"pkg/intent", "pkg/maglev", "pkg/reconcile", "controlplane/evpn", "controlplane/loadbalancer"} {
		if by := found[module+pure]; by != nil {
			t.Errorf("%s starts nothing and would always run; below it: %v", pure, by)
		}
	}
}
