package vm_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/test/nightly"
	"github.com/ovn-sluice/sluice/test/programs"
)

// suite is the tests of a package that run in a virtual machine.
type suite struct {
	pkg string
	// tag is the build tag of the tests; those of files without it run elsewhere, unless
	// untagged says that all do that have no tag.
	tag      string
	untagged bool
	// every are the tests that each run has, as of go test -run. more are those that a run has besides
	// which SLUICE_VM_MORE asks for; the others are left to the nightly run.
	every, more []string
	// on are tests that each run has besides, by the kernel that has them: one suffices,
	// for the time that they take.
	on     map[string][]string
	kernel string // this row's
	skip   string // as of go test -skip
	// setup goes before the tests in the script, files into the guest.
	setup string
	files map[string]string
	// programs are those of Sluice's that the tests run.
	programs []string
	chosen   []string // what prepare has put into the machine
}

func (s suite) name() string { return path.Base(s.pkg) }

// all are the names of the suite's tests.
func (s suite) all(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if s.tag != "" && !strings.HasPrefix(string(text), "//go:build "+s.tag+"\n") && (!s.untagged || strings.HasPrefix(string(text), "//go:build ")) {
			continue
		}
		for _, m := range testRE.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no tests", s.pkg)
	}
	slices.Sort(names)
	return names
}

var testRE = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// now are the tests of this run.
func (s suite) now(t *testing.T) []string {
	t.Helper()
	if only := os.Getenv("SLUICE_VM_TESTS"); only != "" {
		name, tests, some := strings.Cut(only, ":")
		switch {
		case name != s.name():
			return nil
		case some:
			return strings.Split(tests, ",")
		}
		return s.all(t)
	}
	if nightly.On() {
		return s.all(t)
	}
	now := slices.Concat(s.every, s.on[s.kernel])
	if os.Getenv("SLUICE_VM_MORE") != "" {
		now = append(now, s.more...)
	}
	return now
}

// left says which tests this run leaves out.
func (s suite) left(t *testing.T) string {
	t.Helper()
	all := map[string]bool{}
	for _, name := range s.all(t) {
		all[name] = true
	}
	rest := maps.Clone(all)
	var parts []string
	for _, name := range s.now(t) {
		top, part, _ := strings.Cut(name, "/")
		if !all[top] {
			t.Errorf("%s has no test %s", s.pkg, top)
		}
		if part != "" {
			parts = append(parts, top+" but "+part)
		}
		delete(rest, top)
	}
	if len(rest)+len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", s.name(), strings.Join(append(slices.Sorted(maps.Keys(rest)), parts...), ", "))
}

// pattern is that of go test -run.
func (s suite) pattern(t *testing.T) string {
	t.Helper()
	var out []string
	for _, name := range s.now(t) {
		top, part, found := strings.Cut(name, "/")
		out = append(out, "^"+top+"$")
		if found {
			out[len(out)-1] += "/" + part
		}
	}
	return strings.Join(out, "|")
}

// prepare puts the suite's programs into the files of a guest and gives the part
// of the script that runs it.
func (s *suite) prepare(t *testing.T, files map[string]string) string {
	t.Helper()
	s.chosen = s.now(t)
	maps.Copy(files, s.files)
	for _, name := range s.programs {
		files["bin/"+name] = program(t, name)
	}
	files[s.name()+".test"] = s.binary(t)
	args := "-test.v -test.timeout 100m -test.run '" + s.pattern(t) + "'"
	if s.skip != "" {
		args += " -test.skip '" + s.skip + "'"
	}
	// The lab waits longer than on a machine that does not translate instructions.
	return fmt.Sprintf("%sexport SLUICE_LAB_PATIENCE=10\n"+
		`echo "suite %[2]s at $(cut -d ' ' -f 1 /proc/uptime)"`+"\n./%[2]s.test %[3]s || failed=1\n"+
		`echo; echo "end of %[2]s at $(cut -d ' ' -f 1 /proc/uptime)"`+"\n", s.setup, s.name(), args)
}

// check looks for every test by its name: a run that left some out, or all, has
// the status 0 as well.
func (s suite) check(t *testing.T, out string) {
	t.Helper()
	m := regexp.MustCompile(`(?s)\nsuite ` + s.name() + ` at ([0-9.]+)\n(.*\n)end of ` + s.name() + ` at ([0-9.]+)\n`).FindStringSubmatch(out + "\n")
	if m == nil {
		t.Fatal("it did not come to its end")
	}
	var from, to float64
	if _, err := fmt.Sscan(m[1]+" "+m[3], &from, &to); err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, name := range s.chosen {
		name, _, _ = strings.Cut(name, "/")
		passed := regexp.MustCompile(`(?m)^--- PASS: ` + name + ` \(([0-9]+)`).FindStringSubmatch(m[2])
		if passed == nil {
			t.Errorf("%s did not pass", name)
			continue
		}
		ran = append(ran, name+" "+passed[1])
	}
	if strings.Contains(m[2], "--- SKIP: ") {
		t.Error("a test was skipped")
	}
	report(t, "seconds of the machine's: %s; all %.0f", strings.Join(ran, ", "), to-from)
}

func withDeadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// builds are the programs and tests that were built.
type builds struct {
	sync.Mutex
	dir   string
	files map[string]string
}

// built is for all tests.
var built builds

// binary builds the tests of the package as one static program.
func (s suite) binary(t *testing.T) string {
	t.Helper()
	return static(t, "tests of "+s.pkg+" "+s.tag, "test", "-c", "-tags", s.tag, s.pkg)
}

// static has the go command build one static program.
func static(t *testing.T, what, command string, args ...string) string {
	t.Helper()
	return built.once(t, what, func(file string) *exec.Cmd {
		cmd := exec.Command("go", append([]string{command, "-trimpath", "-ldflags", "-s -w", "-o", file}, args...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		return cmd
	})
}

// program is one of Sluice's, without symbols: a machine reads it into its memory.
func program(t *testing.T, name string) string {
	t.Helper()
	return built.once(t, name, func(file string) *exec.Cmd {
		dir, err := programs.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		return exec.Command("strip", "-o", file, filepath.Join(dir, name))
	})
}

// once runs a command that writes one file, unless it has run.
func (b *builds) once(t *testing.T, what string, command func(file string) *exec.Cmd) string {
	t.Helper()
	b.Lock()
	defer b.Unlock()
	if file := b.files[what]; file != "" {
		return file
	}
	file := filepath.Join(b.dir, strings.NewReplacer("/", "_", " ", "_").Replace(what))
	if out, err := command(file).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", what, err, out)
	}
	b.files[what] = file
	return file
}
