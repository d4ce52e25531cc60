package vm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/vm"
)

// deadline is for a machine that hangs; a slow one takes a small part of it.
const deadline = 210 * time.Minute

// row is a Debian release's kernel, OVN, Open vSwitch and FRR, that Sluice is
// tested with besides this machine's.
type row struct {
	release string
	kernel  string
	ovn     string
	ovs     string
	frr     string
	skip    string // tests that it cannot pass, as of go test -skip
}

// 6.1 is the oldest kernel that Sluice supports. It has no tcx: what is attached
// there is by clsact.
var matrix = []row{
	{release: "bookworm", kernel: "6.1", ovn: "23.03", ovs: "3.1", frr: "8.4.4", skip: "/^tcx$"},
	{release: "trixie", kernel: "6.12", ovn: "25.03", ovs: "3.5", frr: "10.3"},
}

// clouds are the programs that a whole cloud runs.
var clouds = []string{"sluiced", "sluicectl"}

// suites are all tests that run in the machines. Every run boots one and has, of every program, a packet
// for each branch in both families, and a cloud's packets on the kernel's datapath. What is more follows a
// change of what carries it: the kernel path, and FRR as a provider edge of both paths.
var suites = []suite{
	{
		pkg: "../bpf", setup: "mkdir -p /deploy/systemd && cp sluiced.service /deploy/systemd\n",
		files: map[string]string{"sluiced.service": "../../deploy/systemd/sluiced.service"}, // a test reads it where the repository has it
		every: []string{verifierTest, "TestRows", "TestBalance", "TestClients", "TestDevices/^auto$", "TestTapIn", "TestProxyIn", "TestMetadataDevices/^auto$"},
		more:  []string{"TestKernelPathRows", "TestDefaultVRF"},
	},
	{pkg: "../kernelpath", tag: "guest", every: []string{"TestTraffic/^mixed$"}, more: []string{"TestDecide", "TestChangeOver", "TestTraffic/^whole_node$", "TestGuard/^mixed$", "TestAdoptedGoesWithItsVRF"}},
	{pkg: "../../dataplane/kernel"},
	{pkg: "../evpn", tag: "guest", programs: clouds, more: []string{"TestFRREdge"}, on: map[string][]string{"6.12": {"TestKernelDatapath"}}},
	{pkg: "../metadata", tag: "guest", programs: clouds, every: []string{"TestTapsInOpenVSwitch"}},
	{pkg: "../loadbalancer", tag: "guest", untagged: true, programs: append(clouds, "sluice-lab"), on: map[string][]string{"6.1": {"TestVIPFromFabric"}, "6.12": {"TestVIPFromVMs"}}},
}

// modules are what the tests need of the kernel.
var modules = []string{
	"veth", "tun", "bridge", "vxlan", "vrf", "dummy", "8021q", "sch_ingress", "cls_bpf",
	"openvswitch", "geneve", "vport-geneve",
}

// versions is a script that prints a line each.
const versions = `uname -r
ovn-controller --version | head -n 1
ovs-vswitchd --version | head -n 1
/usr/lib/frr/bgpd --version | head -n 1
`

// each runs a test for every row of the matrix, at the same time: a virtual
// machine uses one processor.
func each(t *testing.T, test func(t *testing.T, r row, k vm.Kernel)) {
	for _, r := range matrix {
		t.Run(r.kernel, func(t *testing.T) {
			t.Parallel()
			test(t, r, r.cloudKernel(t))
		})
	}
}

func (r row) cloudKernel(t *testing.T) vm.Kernel {
	t.Helper()
	k, err := vm.Debian(t.Context(), "../../tools/kernel.sh", r.release)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(k.Release, r.kernel+".") {
		t.Fatalf("Debian %s has the kernel %s, want %s", r.release, k.Release, r.kernel)
	}
	return k
}

// checkVersions reports what ran, by its own word, and fails if that is not what
// the row is about.
func (r row) checkVersions(t *testing.T, k vm.Kernel, out string) {
	t.Helper()
	said := strings.SplitN(out, "\n", 5)
	if len(said) < 5 {
		t.Fatalf("no versions: %.200q", out)
	}
	report(t, "kernel %s", strings.Join(said[:4], ", "))
	if said[0] != k.Release {
		t.Errorf("another kernel ran: %q", said[0])
	}
	for i, want := range []string{"ovn-controller " + r.ovn + ".", "(Open vSwitch) " + r.ovs + ".", "bgpd version " + r.frr} {
		if !strings.Contains(said[i+1]+".", want) {
			t.Errorf("%q is not %q", said[i+1], want)
		}
	}
}

// TestMatrix runs the tests of the programs, of the kernel path and of whole
// clouds in one machine for each row: under other kernels, with Open vSwitch's
// kernel datapath, VRF devices, and FRR as a provider edge. What a run leaves out
// is said.
func TestMatrix(t *testing.T) {
	each(t, func(t *testing.T, r row, k vm.Kernel) {
		image, err := vm.DebianImage(t.Context(), "../../tools/image.sh", r.release)
		if err != nil {
			t.Fatal(err)
		}
		g := vm.Guest{Kernel: k, Image: image, Modules: modules, MemoryMiB: 2048, Files: map[string]string{}}
		script := versions + "failed=0\n"
		var now []suite
		for _, s := range suites {
			s.skip, s.kernel = r.skip, r.kernel
			if left := s.left(t); left != "" {
				report(t, "left to nightly, %s", left)
			}
			if s.pattern(t) != "" {
				script += s.prepare(t, g.Files)
				now = append(now, s)
			}
		}
		g.Script = script + "exit $failed\n"
		out := run(t, g)
		r.checkVersions(t, k, out)
		for _, s := range now {
			t.Run(s.name(), func(t *testing.T) { s.check(t, out) })
			if slices.Contains(s.chosen, verifierTest) {
				t.Run("verifier", func(t *testing.T) { compare(t, verifiedBy(t, r.kernel, out)) })
			}
		}
	})
}

// run boots a machine and gives back what its script printed.
func run(t *testing.T, g vm.Guest) string {
	t.Helper()
	res, err := g.Run(withDeadline(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, status %d:\n%s", g.Kernel.Release, res.Status, res.Output)
	if res.Status != 0 {
		t.Errorf("status %d; the kernel said:\n%s", res.Status, res.Console)
	}
	return string(res.Output)
}
