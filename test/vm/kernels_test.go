package vm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/vm"
)

// deadline is for a machine that hangs; a slow one takes a small part of it.
const deadline = 30 * time.Minute

var (
	modules  = []string{"veth", "bridge", "vxlan", "sch_ingress", "cls_bpf"}
	programs = []string{"sh", "nsenter", "ip", "ethtool", "socat", "ss", "setpriv"} // BusyBox has less of them
)

// suite is the tests of a package that run under another kernel.
type suite struct {
	pkg string
	run string // as of go test -run; "": all
}

// TestKernels loads both programs under other kernels and sends packets through
// real devices: few tests under the oldest kernel in every run, nightly all of
// them, and under a newer one as well.
func TestKernels(t *testing.T) {
	all := []suite{{"../bpf", ""}, {"../../dataplane/kernel", ""}}
	type row struct {
		release, version string
		skip             string // as of go test -skip
		suites           []suite
	}
	// 6.1 is the oldest kernel that Sluice supports. It has no tcx: what is
	// attached there is by clsact.
	rows := []row{{"bookworm", "6.1.", "", []suite{{"../bpf", "^TestDevices$/^auto$"}}}}
	if os.Getenv("SLUICE_NIGHTLY") != "" {
		rows = []row{{"bookworm", "6.1.", "/^tcx$", all}, {"trixie", "6.12.", "", all}}
	}
	for _, r := range rows {
		t.Run(strings.TrimSuffix(r.version, "."), func(t *testing.T) { under(t, debian(t, r.release, r.version), r.skip, r.suites) })
	}
}

func debian(t *testing.T, release, version string) vm.Kernel {
	t.Helper()
	k, err := vm.Debian(t.Context(), "../../tools/kernel.sh", release)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(k.Release, version) {
		t.Fatalf("Debian %s has the kernel %s, want %s", release, k.Release, version)
	}
	return k
}

// under runs each suite in a machine of its own, without what skip matches.
func under(t *testing.T, k vm.Kernel, skip string, suites []suite) {
	for _, s := range suites {
		t.Run(filepath.Base(s.pkg), func(t *testing.T) {
			bin := testBinary(t, s.pkg)
			args := "-test.v"
			if s.run != "" {
				args += " -test.run '" + s.run + "'"
			}
			if skip != "" {
				args += " -test.skip '" + skip + "'"
			}
			out := run(t, vm.Guest{Kernel: k, Modules: modules, Programs: programs,
				Files:  map[string]string{"suite.test": bin, "sluiced.service": "../../deploy/systemd/sluiced.service"},
				Script: "mkdir -p /deploy/systemd && mv sluiced.service /deploy/systemd && uname -r && ./suite.test " + args})
			if !strings.HasPrefix(out, k.Release+"\n") {
				t.Errorf("another kernel ran: %.60q", out)
			}
			passed(t, bin, s, out)
		})
	}
}

// testBinary builds the tests of a package as one static program.
func testBinary(t *testing.T, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "suite.test")
	cmd := exec.Command("go", "test", "-c", "-trimpath", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
	}
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
func passed(t *testing.T, bin string, s suite, out string) {
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
