package vm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/vm"
)

// deadline is for a machine that hangs; a slow one takes a small part of it.
const deadline = time.Hour

var (
	modules  = []string{"veth", "bridge", "vxlan", "vrf", "8021q", "sch_ingress", "cls_bpf"}
	programs = []string{"sh", "nsenter", "ip", "ethtool", "socat", "ss", "setpriv"} // BusyBox has less of them
)

// row is a kernel that Sluice is tested under besides this machine's.
type row struct {
	release string // of Debian
	version string
	skip    string // tests that it cannot pass, as of go test -skip
}

// 6.1 is the oldest kernel that Sluice supports. It has no tcx: what is attached
// there is by clsact.
var matrix = []row{{release: "bookworm", version: "6.1", skip: "/^tcx$"}, {release: "trixie", version: "6.12"}}

// each runs a test for every row of the matrix, at the same time: a virtual
// machine uses one processor.
func each(t *testing.T, test func(t *testing.T, r row, k vm.Kernel)) {
	for _, r := range matrix {
		t.Run(r.version, func(t *testing.T) {
			t.Parallel()
			test(t, r, r.kernel(t))
		})
	}
}

func (r row) kernel(t *testing.T) vm.Kernel {
	t.Helper()
	k, err := vm.Debian(t.Context(), "../../tools/kernel.sh", r.release)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(k.Release, r.version+".") {
		t.Fatalf("Debian %s has the kernel %s, want %s", r.release, k.Release, r.version)
	}
	return k
}

func nightly() bool { return os.Getenv("SLUICE_NIGHTLY") != "" }

// suite is the tests of a package that run in a virtual machine.
type suite struct {
	pkg  string
	tags string
	run  string // as of go test -run; "": all
}

// TestKernels loads the programs under other kernels and sends packets through
// real devices, attached in the way that the kernel offers first, and along the
// kernel path; nightly in every way, with all tests of the packages.
func TestKernels(t *testing.T) {
	suites := []suite{{pkg: "../bpf", run: "^TestDevices$/^auto$"}, {pkg: "../kernelpath", tags: "guest"}}
	if nightly() {
		suites = append(suites[1:], suite{pkg: "../bpf"}, suite{pkg: "../../dataplane/kernel"})
	} else {
		report(t, "left to nightly: all of test/bpf and dataplane/kernel under each kernel (now TestDevices)")
	}
	each(t, func(t *testing.T, r row, k vm.Kernel) {
		for _, s := range suites {
			t.Run(filepath.Base(s.pkg), func(t *testing.T) {
				s.under(t, vm.Guest{
					Kernel: k, Modules: modules, Programs: programs, Processors: 2,
					// A test reads the unit where the repository has it.
					Files:  map[string]string{"sluiced.service": "../../deploy/systemd/sluiced.service"},
					Script: "mkdir -p /deploy/systemd && mv sluiced.service /deploy/systemd\n",
				}, r.skip)
			})
		}
	})
}

// under runs the suite in a machine of its own, without what skip matches, and
// gives back what it printed.
func (s suite) under(t *testing.T, g vm.Guest, skip string) string {
	t.Helper()
	bin := s.binary(t)
	args := "-test.v -test.timeout 55m"
	if s.run != "" {
		args += " -test.run '" + s.run + "'"
	}
	if skip != "" {
		args += " -test.skip '" + skip + "'"
	}
	if g.Files == nil {
		g.Files = map[string]string{}
	}
	g.Files["suite.test"] = bin
	g.Script = "uname -r\n" + g.Script + "./suite.test " + args
	out := run(t, g)
	if !strings.HasPrefix(out, g.Kernel.Release+"\n") {
		t.Errorf("another kernel ran: %.60q", out)
	}
	s.passed(t, bin, out)
	return out
}

// built are the programs and tests that were built, for all tests.
var built struct {
	sync.Mutex
	dir   string
	files map[string]string
}

// binary builds the tests of the package as one static program.
func (s suite) binary(t *testing.T) string {
	t.Helper()
	return build(t, "tests of "+s.pkg+" "+s.tags, "test", "-c", "-tags", s.tags, s.pkg)
}

// program builds one of Sluice's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	return build(t, name, "build", "-buildvcs=false", "../../cmd/"+name)
}

// build runs the go command, which writes one file, once.
func build(t *testing.T, what, command string, args ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if file := built.files[what]; file != "" {
		return file
	}
	file := filepath.Join(built.dir, strings.NewReplacer("/", "_", " ", "_").Replace(what))
	cmd := exec.Command("go", append([]string{command, "-trimpath", "-ldflags", "-s -w", "-o", file}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", what, err, out)
	}
	built.files[what] = file
	return file
}

func run(t *testing.T, g vm.Guest) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	res, err := g.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, status %d:\n%s", g.Kernel.Release, res.Status, res.Output)
	if res.Status != 0 {
		t.Errorf("status %d; the kernel said:\n%s", res.Status, res.Console)
	}
	return string(res.Output)
}

// passed looks for every test by its name: a run that left some out, or all, has
// the status 0 as well.
func (s suite) passed(t *testing.T, bin, out string) {
	t.Helper()
	pattern := s.run
	if pattern == "" {
		pattern = "."
	}
	// -test.list takes the pattern of a test alone.
	list, err := exec.Command(bin, "-test.list", strings.ReplaceAll(pattern, "/^auto$", "")).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(list))
	if len(names) == 0 {
		t.Fatalf("no tests match %q", pattern)
	}
	for _, name := range names {
		if !strings.Contains(out, "\n--- PASS: "+name+" ") {
			t.Errorf("%s did not pass", name)
		}
	}
	if strings.Contains(out, "--- SKIP: ") {
		t.Error("a test was skipped")
	}
}
