package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Every test that the plan names is there: a renamed one would run no more, or run twice.
func TestNamesOfPlan(t *testing.T) {
	check := func(pkg string, names []string) {
		t.Helper()
		text := source(t, pkg)
		for _, name := range names {
			top, _, _ := strings.Cut(name, "/")
			if !regexp.MustCompile(`(?m)^func ` + top + `\(`).MatchString(text) {
				t.Errorf("%s has no test %s", pkg, top)
			}
		}
	}
	for _, l := range later {
		check(l.pkg, l.tests)
	}
	for _, p := range quick(nil, nil).all() {
		for _, pkg := range p.packages {
			check(pkg, p.run)
		}
	}
}

func source(t *testing.T, pkg string) string {
	t.Helper()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", pkg, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// The files that bring a test into make test are there.
func TestPathsOfPlan(t *testing.T) {
	for _, l := range later {
		for _, path := range l.paths {
			if found, err := filepath.Glob(filepath.Join("../..", path)); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no %s (%v)", l.tests, path, err)
			}
		}
	}
}

// Nothing is left out but what later names: every package with tests has its place in make test.
func TestEveryPackageRuns(t *testing.T) {
	all := []string{module + "/pkg/config", module + "/pkg/ovsdb", module + "/test/lab", module + "/test/cloudinit", module + "/test/bareroot", module + "/test/rights"}
	all = append(all, whole(raceless)...)
	var run []string
	for _, p := range daily(all, []string{module + "/pkg/ovsdb"}, changed{all: "test"}).all() {
		run = append(run, whole(p.packages)...)
	}
	for _, pkg := range all {
		if !slices.Contains(run, pkg) {
			t.Errorf("%s does not run", pkg)
		}
	}
}

// inputsOnce reads what tests are built of once for all tests.
var inputsOnce = sync.OnceValues(func() (changed, error) {
	c := changed{base: "x"}
	return c, c.readInputs()
})

// ofFiles is what a change of files is compared with.
func ofFiles(t *testing.T, files ...string) changed {
	t.Helper()
	t.Chdir("../..")
	c, err := inputsOnce()
	if err != nil {
		t.Fatal(err)
	}
	c.files = files
	return c
}

func TestByPath(t *testing.T) {
	c := ofFiles(t, "docs/lab.md", "controlplane/octavia/doc.go")
	names := func(lanes ...lane) (run []string) {
		for _, p := range slices.Concat(lanes...) {
			run = append(run, p.run...)
		}
		return run
	}
	machines, root, others, alone := byPath(c)
	if run := names(machines, root, others, alone); !slices.Contains(run, "TestComesAndGoes") || slices.Contains(run, "TestChaos") || slices.Contains(run, "TestBareRoot") {
		t.Errorf("a change of the controller runs %v", run)
	}
	if slices.Contains(dailyOf(evpn, c).skip, "TestChaos") {
		t.Error("TestChaos does not run at all")
	}
	if !slices.Contains(dailyOf(evpn, changed{all: "x"}).skip, "TestChaos") {
		t.Error("TestChaos runs twice")
	}
	if said := c.leftOut(); !strings.Contains(said, "test/evpn: TestOVN2503\n") || strings.Contains(said, "TestComesAndGoes") {
		t.Errorf("left out is %s", said)
	}
}

func TestPattern(t *testing.T) {
	if got := pattern([]string{"TestA", "TestB/c_d"}); got != "^TestA$|^TestB$/^c_d$" {
		t.Error(got)
	}
}

// A run of nothing is no success.
func TestNothingRuns(t *testing.T) {
	one := schedule{beside: lane{{name: "x", packages: []string{"./pkg/config"}}}}
	if got, err := one.only(whole([]string{"./pkg/config"})); err != nil || len(got.all()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := one.only(whole([]string{"./pkg/confg"})); err == nil {
		t.Error("a package that is not there runs")
	}
	if err := (&runner{out: io.Discard}).summary(t.Context()); err == nil {
		t.Error("nothing has run, and that is a success")
	}
	ran := map[string]bool{"TestA": true, "TestA/one": true}
	if err := missing([]string{"TestA", "TestA/(one|two)"}, ran); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"TestB", "TestA/three", "TestA/on"} {
		if missing([]string{name}, ran) == nil {
			t.Errorf("%s has not run, and nobody says so", name)
		}
	}
}

// A change of what a test is built of, runs or reads has it run, and no other.
func TestInputs(t *testing.T) {
	c := ofFiles(t)
	of := func(test string) postponed {
		return later[slices.IndexFunc(later, func(l postponed) bool { return slices.Contains(l.tests, test) })]
	}
	for _, row := range []struct {
		test, file string
		want       bool
	}{
		{"TestOVN2503", "pkg/ovsdb/session.go", true},       // linked into sluiced, which it runs
		{"TestOVN2503", "cmd/sluicectl/main.go", true},      // the same of sluicectl
		{"TestOVN2503", "pkg/ovsdb/session_test.go", false}, // tests of others
		{"TestOVN2503", "test/lab/node.go", true},           // linked into the test
		{"TestOVN2503", "test/evpn/versions_test.go", true}, // the test
		{"TestOVN2503", "test/programs/programs.go", true},  // a file that other kernels' tests do without
		{"TestOVN2503", "tools/ovn.sh", true},               // a script
		{"TestOVN2503", "tools/debian.sh", true},            // what that sources
		{"TestOVN2503", "tools/build.sh", true},             // what makes the programs
		{"TestOVN2503", "controlplane/octavia/doc.go", false} /* of the controller */, {"TestOVN2503", "go.sum", true},
		{"TestOVN2503", "dataplane/ebpf/routing_x86_bpfel.o", true}, // embedded
		{"TestOVN2503", "README.md", false},
		{"TestComesAndGoes", "controlplane/octavia/doc.go", true},
		{"TestEachCapability", "deploy/systemd/sluiced.service", true},
		{"TestMatrix/6.12", "test/loadbalancer/world_test.go", true}, // tests that the machines run
		{"TestMatrix/6.12", "deploy/systemd/sluiced.service", true},
		{"TestMatrix/6.12", "tools/kernel.sh", true},
		{"TestBareRoot", "Makefile", true},
		{"TestBareRoot", "tools/deps.sh", true},
		{"TestBareRoot", "test/demo/demo.go", true},
		{"TestBareRoot", "tools/suite/main.go", false},
	} {
		c.files = []string{row.file}
		if got := c.wants(of(row.test)); (got != "") != row.want {
			t.Errorf("%s after a change of %s: %q, want %v", row.test, row.file, got, row.want)
		}
	}
}

// Whatever the go command links into a test, or into a program that the test names, is an input of it.
func TestInputsAreWhole(t *testing.T) {
	c := ofFiles(t)
	done, linked := map[string]bool{}, map[string][]string{}
	for _, l := range later {
		if l.paths != nil || done[l.pkg] {
			continue
		}
		done[l.pkg] = true
		names := goListed(t, "-test", l.pkg)
		for _, program := range []string{"sluiced", "sluicectl", "sluice-controller", "sluice-lab"} {
			if strings.Contains(source(t, l.pkg), `"`+program+`"`) {
				if linked[program] == nil {
					linked[program] = goListed(t, "./cmd/"+program)
				}
				names = append(names, linked[program]...)
			}
		}
		n := 0
		for _, name := range names {
			d, ours := directory(strings.TrimSuffix(name, ".test"))
			if !ours {
				continue
			}
			if n++; !c.tree.has(c.inputs[l.pkg], d+"/x.go") {
				t.Errorf("%s: a change of %s is not seen", l.pkg, d)
			}
		}
		if n < 2 {
			t.Errorf("%s: %d packages are linked", l.pkg, n)
		}
	}
}

// goListed are the packages that are linked into some.
func goListed(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .ForTest}}{{.ImportPath}}{{end}}"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
