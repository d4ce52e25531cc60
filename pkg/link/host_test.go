package link_test

import (
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/link"
)

// A change of an address has links read anew only where one is not known.
func TestHost(t *testing.T) {
	h := newFacts(t, links).Host()
	change := func(script string) { run(t, "nsenter --net="+namespacePath()+" sh -ec '"+script+"'") }
	look := func(what string, changed bool, want ...string) {
		t.Helper()
		all, addresses, err := h.Read(changed)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if !slices.ContainsFunc(all, func(l link.Link) bool { return l.Name == name && len(l.Prefixes) > 0 }) ||
				!slices.ContainsFunc(addresses, func(a link.Address) bool { return a.Link == name }) {
				t.Errorf("%s: no link %s with an address: %v, %v", what, name, all, addresses)
			}
		}
	}
	look("at first", false, "eth0", "eth1")
	change("ip addr add 10.1.0.1/24 dev far; ip -6 addr add 2001:db8:1::1/64 dev far nodad; ip link set eth1 down; ip link set eth1 name eth2; ip link set eth2 up; ip addr replace 198.51.100.1/24 dev eth2")
	look("an address of a known link", false, "eth0", "far", "eth1")
	look("links have changed", true, "far", "eth2")
	change("ip link add new type bridge; ip addr add 10.2.0.1/24 dev new; ip link del eth2")
	look("an address of a new link", false, "new")
}
