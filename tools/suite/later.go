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
	paths []string // directories
	// env makes the tests longer. They run without it in make test otherwise, unless only is set.
	env  []string
	only bool
}

// What the tests in virtual machines are about, and what has them all run.
var (
	machinePaths   = []string{"bpf", "dataplane/ebpf", "dataplane/kernel", "controlplane/bgp", "test/kernelpath", "test/vm"}
	moreOfMachines = []string{"SLUICE_VM_MORE=1"}
)

// later is all that make test leaves out of the packages that it names.
var later = []postponed{
	{pkg: machine, tests: []string{"TestMatrix/6.1"}, finds: "the kernel path under the oldest kernel, FRR as a provider edge of both paths",
		paths: machinePaths, env: moreOfMachines},
	{pkg: machine, tests: []string{"TestMatrix/6.12"}, finds: "what kernel 6.12, tcx on a real boot, OVN 25.03 with Open vSwitch 3.5 and FRR 10.3 do otherwise",
		paths: machinePaths, env: moreOfMachines, only: true},
	{pkg: evpn, tests: []string{"TestOVN2503"}, finds: "tables, columns and timing of OVN 25.03", paths: []string{"pkg/ovsdb", "controlplane/ovn"}},
	{pkg: evpn, tests: []string{"TestSecuredClouds"}, finds: "TLS and access control of the databases", paths: []string{"pkg/ovsdb", "controlplane/ovn"}},
	{pkg: evpn, tests: []string{"TestAdvertisedRoutes"}, finds: "routes between OVN 25.03 and the fabric",
		paths: []string{"pkg/ovsdb", "controlplane/ovn", "controlplane/ovnroutes", "dataplane/kernel"}},
	{pkg: evpn, tests: []string{"TestUnderlayWithoutFRR"}, finds: "BGP unnumbered, ECMP and the node's own routes in the underlay",
		paths: []string{"controlplane/bgp", "controlplane/underlay", "controlplane/ra", "controlplane/bfd"}},
	{pkg: evpn, tests: []string{"TestVTEPIsFollowed"}, finds: "the node's tunnel address that goes, moves and is replaced",
		paths: []string{"cmd/sluiced", "pkg/link", "dataplane/kernel"}},
	{pkg: evpn, tests: []string{"TestChangedProgramsAreReplacedAfterBGP", "TestMountsOverPins"},
		finds: "programs of another build that delay BGP or lose packets, pins that a mount takes away", paths: []string{"dataplane/ebpf"}},
	{pkg: evpn, tests: []string{"TestVNIOfATenantThatRuns"}, finds: "a newcomer to a VNI that cuts the tenant who runs", paths: []string{"controlplane/evpn"}},
	{pkg: evpn, tests: []string{"TestChaos"}, finds: "losses, leaks and leftovers of rarer sequences: two minutes of events, not 45 seconds",
		paths: []string{"controlplane", "dataplane", "bpf"}, env: []string{"SLUICE_CHAOS_TIME=2m"}},
	{pkg: evpn, tests: []string{"TestForeignObjects", "TestPhysicalGateway", "TestVLANsOnTwoBridges", "TestDevicesDoNotGrow"},
		finds: "objects of others deleted, provider networks with a router of their own, VLANs on two bridges, devices that grow with tenants",
		paths: []string{"dataplane/kernel", "dataplane/ovs"}},
	{pkg: evpn, tests: []string{"TestDowngradeIsRefused"}, finds: "an older build that takes over newer maps", paths: []string{"dataplane/ebpf/pinned"}},
	{pkg: evpn, tests: []string{"TestGatewayMoveBesideOVN"}, finds: "moves of gateway ports that take longer than OVN's", paths: []string{"pkg/tables"}},
	{pkg: evpn, tests: []string{"TestControlPlaneRestarts/(b-central_nb|b-central_sb|a-central_northd|b-central_northd|b1_ovsdb|b1_controller)"},
		finds: "the same restarts in the other cloud, and of northd", paths: []string{"pkg/ovsdb", "controlplane/ovn"}},
	{pkg: loadbalancer, tests: []string{"TestComesAndGoes", "TestKillUnderConnections"},
		finds: "load balancers that come and go faster than nodes follow; many connections while backends die", paths: []string{"controlplane/loadbalancer", "controlplane/tapbalancing"}},
	{pkg: metadata, tests: []string{"TestManyNetworks"}, finds: "500 networks on one node", paths: []string{"dataplane/metadata/namespace"}},
	{pkg: metadata, tests: []string{"TestCloudInit", "TestFaultsUnderRequests/kill_-9_of_the_(local|Southbound|Northbound)_database"},
		finds: "cloud-init of a Debian release as the client; databases that die under requests", paths: []string{"dataplane/metadata", "controlplane/metadata"}},
	{pkg: rights, tests: []string{"TestEachCapability"}, finds: "a capability of the unit that is not needed, or not named", paths: []string{"deploy/systemd", "dataplane/ebpf/pinned"}},
	{pkg: cloudInit, tests: []string{"TestBoot"}, finds: "the runner of cloud-init", paths: []string{"test/cloudinit", "dataplane/metadata"}},
}

// table is what make test leaves to the night, in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| tests | find | in `make test` when this has changed |\n| --- | --- | --- |\n")
	for _, l := range later {
		name := strings.TrimPrefix(l.pkg, "./") + ": " + strings.ReplaceAll(strings.Join(l.tests, ", "), "|", ", ")
		if len(l.env) > 0 {
			name += " with `" + strings.Join(l.env, " ") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, l.finds, strings.Join(l.paths, ", "))
	}
	return b.String()
}
