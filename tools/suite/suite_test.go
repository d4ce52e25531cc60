package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
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

// The paths that bring a test into make test are there.
func TestPathsOfPlan(t *testing.T) {
	for _, l := range later {
		for _, path := range l.paths {
			if info, err := os.Stat(filepath.Join("../..", path)); err != nil || !info.IsDir() {
				t.Errorf("%s: %s is no directory (%v)", l.tests, path, err)
			}
		}
	}
}

// Nothing is left out but what later names: every package with tests has its place in make test.
func TestEveryPackageRuns(t *testing.T) {
	all := []string{module + "/pkg/config", module + "/pkg/ovsdb", module + "/test/lab", module + "/test/cloudinit"}
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

func TestByPath(t *testing.T) {
	c := changed{base: "x", files: []string{"pkg/ovsdb/session.go", "docs/lab.md"}}
	var run []string
	machines, others, alone := byPath(c)
	for _, p := range slices.Concat(machines, others, alone) {
		run = append(run, p.run...)
	}
	if !slices.Contains(run, "TestOVN2503") || slices.Contains(run, "TestMatrix/6.12") || slices.Contains(run, "TestChaos") {
		t.Errorf("a change of pkg/ovsdb runs %v", run)
	}
	if slices.Contains(dailyOf(evpn, c).skip, "TestChaos") {
		t.Error("TestChaos does not run at all")
	}
	if !slices.Contains(dailyOf(evpn, changed{all: "x"}).skip, "TestChaos") {
		t.Error("TestChaos runs twice")
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

// A change of a postponed test, or of the lab that it uses, has it run.
func TestChangedTests(t *testing.T) {
	t.Chdir("../..")
	l := later[slices.IndexFunc(later, func(l postponed) bool { return slices.Contains(l.tests, "TestOVN2503") })]
	for file, want := range map[string]bool{"test/evpn/versions_test.go": true, "test/lab/node.go": true, "test/evpn/drain_test.go": false} {
		if got := (changed{base: "x", files: []string{file}}).wants(l); (got != "") != want {
			t.Errorf("a change of %s: %q", file, got)
		}
	}
}
