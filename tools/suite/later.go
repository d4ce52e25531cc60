package main

import (
	"fmt"
	"strings"
)

// postponed are tests of a package that make test leaves to the night, unless a change touches paths.
type postponed struct {
	pkg   string
	tests []string // as of part.run
	finds string   // what the night would find with them
	// paths has them run for a change of these files alone (see matches). nil: of what they are built of
	// and run, which is derived.
	paths []string
	// env makes the tests longer. They run without it in make test otherwise, unless only is set.
	env  []string
	only bool
}

// moreOfMachines has the tests in virtual machines do all that they can.
var moreOfMachines = []string{"SLUICE_VM_MORE=1"}

// What both commands of the README need of a machine.
var firstCommand = []string{"Makefile", "go.mod", "go.sum", "tools/*.sh", "test/demo", "test/lab", "test/bareroot"}

// later is all that make test leaves out of the packages that it names.
var later = []postponed{
	{pkg: machine, tests: []string{"TestMatrix/6.1"}, finds: "the kernel path under the oldest kernel, FRR as a provider edge of both paths", env: moreOfMachines},
	{pkg: machine, tests: []string{"TestMatrix/6.12"}, finds: "what kernel 6.12, tcx on a real boot, OVN 25.03 with Open vSwitch 3.5 and FRR 10.3 do otherwise", env: moreOfMachines, only: true},
	{pkg: evpn, tests: []string{"TestOVN2503"}, finds: "tables, columns and timing of OVN 25.03"},
	{pkg: evpn, tests: []string{"TestSecuredClouds"}, finds: "TLS and access control of the databases"},
	{pkg: evpn, tests: []string{"TestAdvertisedRoutes"}, finds: "routes between OVN 25.03 and the fabric"},
	{pkg: evpn, tests: []string{"TestUnderlayWithoutFRR"}, finds: "BGP unnumbered, ECMP and the node's own routes in the underlay"},
	{pkg: evpn, tests: []string{"TestVTEPIsFollowed"}, finds: "the node's tunnel address that goes, moves and is replaced"},
	{pkg: evpn, tests: []string{"TestChangedProgramsAreReplacedAfterBGP", "TestMountsOverPins"},
		finds: "programs of another build that delay BGP or lose packets, pins that a mount takes away"},
	{pkg: evpn, tests: []string{"TestVNIOfATenantThatRuns"}, finds: "a newcomer to a VNI that cuts the tenant who runs"},
	{pkg: evpn, tests: []string{"TestChaos"}, finds: "losses, leaks and leftovers of rarer sequences: two minutes of events, not 45 seconds", env: []string{"SLUICE_CHAOS_TIME=2m"}},
	{pkg: evpn, tests: []string{"TestForeignObjects", "TestPhysicalGateway", "TestVLANsOnTwoBridges", "TestDevicesDoNotGrow"},
		finds: "objects of others deleted, provider networks with a router of their own, VLANs on two bridges, devices that grow with tenants"},
	{pkg: evpn, tests: []string{"TestDowngradeIsRefused"}, finds: "an older build that takes over newer maps"},
	{pkg: evpn, tests: []string{"TestGatewayMoveBesideOVN"}, finds: "moves of gateway ports that take longer than OVN's"},
	{pkg: evpn, tests: []string{"TestControlPlaneRestarts/(b-central_nb|b-central_sb|a-central_northd|b-central_northd|b1_ovsdb|b1_controller)"},
		finds: "the same restarts in the other cloud, and of northd"},
	{pkg: evpn, tests: []string{"TestGatewayChangesBridgeWithoutASwitch"}, finds: "a gateway port that changes its bridge while ovs-vswitchd does not run"},
	{pkg: loadbalancer, tests: []string{"TestComesAndGoes", "TestKillUnderConnections", "TestSessionsEndWithVIP"},
		finds: "load balancers that come and go faster than nodes follow; many connections while backends die; sessions that outlive their VIP"},
	{pkg: metadata, tests: []string{"TestManyNetworks", "TestNameOfNamespaceTaken"}, finds: "500 networks on one node; something else that has the name of the proxy's namespace"},
	{pkg: metadata, tests: []string{"TestCloudInit", "TestFaultsUnderRequests/kill_-9_of_the_(local|Southbound|Northbound)_database"},
		finds: "cloud-init of a Debian release as the client; databases that die under requests"},
	{pkg: rights, tests: []string{"TestEachCapability"}, finds: "a capability of the unit that is not needed, or not named"},
	{pkg: cloudInit, tests: []string{"TestBoot"}, finds: "the runner of cloud-init"},
	{pkg: bareRoot, tests: []string{"TestBareRoot"}, finds: "a package that a script calls and tools/deps.sh does not install", paths: firstCommand},
}

// name is how people call them.
func (l postponed) name() string {
	name := strings.TrimPrefix(l.pkg, "./") + ": " + strings.ReplaceAll(strings.Join(l.tests, ", "), "|", ", ")
	if len(l.env) > 0 {
		name += " with `" + strings.Join(l.env, " ") + "`"
	}
	return name
}

// table is what make test leaves to the night, in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| tests | find | in `make test` when this has changed |\n| --- | --- | --- |\n")
	for _, l := range later {
		paths := "what they are built of and run: `suite list " + l.pkg + "`"
		if l.paths != nil {
			paths = strings.Join(l.paths, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.name(), l.finds, paths)
	}
	return b.String()
}

// listOf is what the tests of packages are built of and run.
func listOf(packages []string) (string, error) {
	t, err := readTree()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range packages {
		in, err := t.of(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %s\n", p, in)
	}
	return b.String(), nil
}
