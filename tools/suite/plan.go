package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/ovn-sluice/sluice"

// part is one command: a test run of some packages, or a check.
type part struct {
	name     string
	command  []string // of a check; nil: go test
	packages []string
	// run and skip name tests as of go test -run and -skip: "TestX" or "TestX/part".
	run, skip []string
	race      bool
	cached    bool // go's test cache may answer
	env       []string
	behind    bool   // other work goes first
	byPath    string // why it runs, of a part that only a changed path needs
}

// A lane is parts one after the other. The lanes of a stage run side by side.
type (
	lane  []part
	stage []lane
)

// schedule is a run: stages one after the other, and beside all of them a lane that takes what they
// leave of the processors. last runs when nothing else does any more.
type schedule struct {
	stages       []stage
	beside, last lane
}

// all gives every part.
func (s schedule) all() (parts []part) {
	for _, lanes := range s.stages {
		for _, l := range lanes {
			parts = append(parts, l...)
		}
	}
	return slices.Concat(parts, s.beside, s.last)
}

// Packages of labs. No other stage runs beside evpn, which counts packets, and nothing beside the demo,
// which is to leave nothing behind.
const (
	demo         = "./test/demo"
	bareRoot     = "./test/bareroot" // by path alone
	evpn         = "./test/evpn"
	loadbalancer = "./test/loadbalancer"
	metadata     = "./test/metadata"
	machine      = "./test/vm"
	cloudInit    = "./test/cloudinit" // by path alone
	rights       = "./test/rights"    // by path alone
)

var (
	labs = []string{evpn, loadbalancer, metadata, machine}
	// raceless run all that they test in other processes or in the kernel.
	raceless = append(slices.Clone(labs), "./test/bpf", demo)
)

var (
	lint      = part{name: "lint", command: []string{"tools/lint.sh"}}
	generated = part{name: "generated", command: []string{"tools/generated.sh"}}
)

// plan gives what a run does.
func plan(tier string, packages []string, paths changed) (schedule, error) {
	all, uncached, err := listPackages()
	if err != nil {
		return schedule{}, err
	}
	var s schedule
	switch tier {
	case "quick":
		s = quick(all, uncached)
	case "test":
		s = daily(all, uncached, paths)
	case "nightly":
		s = wholeNight(all)
	}
	if len(packages) == 0 {
		return s, nil
	}
	want, err := goList(packages...)
	if err != nil {
		return schedule{}, err
	}
	return s.only(want)
}

func quick(all, uncached []string) schedule {
	return schedule{stages: []stage{
		{{lint, units(without(all, uncached), part{cached: true})},
			{{name: "programs", packages: []string{"./test/bpf"}, run: []string{"TestRows", "TestBalance", "TestClients", "TestTapIn"}}}},
		{{{name: "cloud", packages: []string{evpn}, run: []string{"TestPingOfEverySize", "TestVNIChange", "TestVMComesMovesAndGoes", "TestSwitchRestarts/a1"}}}},
	}}
}

// daily is make test. Units that start programs mostly wait; the eBPF programs are work of the kernel's
// verifier on one processor. An emulated machine takes one processor for minutes, and asserts no time.
func daily(all, uncached []string, paths changed) schedule {
	pure, starts := units(without(all, uncached), part{cached: true, race: true}), units(uncached, part{race: true})
	starts.name = "units that start programs"
	small := part{name: "small labs", packages: without(labsOf(all), whole([]string{cloudInit, rights, bareRoot})), race: true}
	programs := part{name: "programs", packages: []string{"./test/bpf"}}
	machines, root, others, alone := byPath(paths)
	return schedule{
		stages: []stage{
			{{lint, generated, pure, starts}, {programs, small}},
			{{dailyOf(evpn, paths)}},
			{{dailyOf(loadbalancer, paths)}, {dailyOf(metadata, paths)}},
			{others}, {alone},
		},
		beside: append(lane{dailyOf(machine, paths)}, machines...),
		// A bare root builds all that there is: beside an emulated machine, both would take for ever.
		last: append(root, part{name: "the demo", packages: []string{demo}}),
	}
}

// nightlyEnv tells tests that they have the night.
const nightlyEnv = "SLUICE_NIGHTLY=1"

func wholeNight(all []string) schedule {
	env := []string{nightlyEnv}
	lab := func(pkg string) stage { return stage{{{name: pkg, packages: []string{pkg}, race: true, env: env}}} }
	alone := append(slices.Clone(labs), demo, bareRoot)
	rest := part{name: "units and small labs", packages: without(all, whole(alone)), race: true, env: env}
	return schedule{stages: []stage{{{lint, generated, rest}}, lab(evpn), lab(loadbalancer), lab(metadata), lab(machine), lab(demo), lab(bareRoot)}}
}

// units are the packages outside test/.
func units(packages []string, p part) part {
	p.name = "units"
	p.packages = slices.DeleteFunc(slices.Clone(packages), isLab)
	return p
}

func isLab(pkg string) bool { return strings.HasPrefix(pkg, module+"/test/") }

// labsOf are the packages below test/ that have no part of their own.
func labsOf(all []string) []string {
	return slices.DeleteFunc(without(all, whole(raceless)), func(p string) bool { return !isLab(p) })
}

// dailyOf is a package without what waits for the night, or runs by a changed path.
func dailyOf(pkg string, paths changed) part {
	p := part{name: pkg, packages: []string{pkg}}
	for _, l := range later {
		if l.pkg == pkg && (len(l.env) == 0 || l.only || paths.wants(l) != "") {
			p.skip = append(p.skip, l.tests...)
		}
	}
	return p
}

// byPath gives the tests that wait for the night, of which a change wants some now.
func byPath(paths changed) (machines, root, others, alone lane) {
	for _, l := range later {
		why := paths.wants(l)
		if why == "" {
			continue
		}
		p := part{name: l.pkg, packages: []string{l.pkg}, run: l.tests, env: l.env, byPath: why}
		switch l.pkg {
		case machine:
			machines = append(machines, p)
		case bareRoot:
			root = append(root, p)
		case evpn:
			alone = append(alone, p)
		default:
			others = append(others, p)
		}
	}
	return merge(machines), merge(root), merge(others), merge(alone)
}

// merge makes one part of those of a package with the same environment: each builds and links anew.
func merge(l lane) lane {
	var out lane
	for _, p := range l {
		i := slices.IndexFunc(out, func(o part) bool { return o.name == p.name && slices.Equal(o.env, p.env) })
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].run = append(slices.Clone(out[i].run), p.run...)
		if !strings.Contains(out[i].byPath, p.byPath) {
			out[i].byPath += ", " + p.byPath
		}
	}
	return out
}

// only keeps the packages that are wanted, and no check.
func (s schedule) only(want []string) (schedule, error) {
	keep := func(l lane) (kept lane) {
		for _, p := range l {
			p.packages = slices.DeleteFunc(whole(p.packages), func(pkg string) bool { return !slices.Contains(want, pkg) })
			if len(p.packages) > 0 {
				kept = append(kept, p)
			}
		}
		return kept
	}
	out := schedule{beside: keep(s.beside), last: keep(s.last)}
	for _, lanes := range s.stages {
		var kept stage
		for _, l := range lanes {
			kept = append(kept, keep(l))
		}
		out.stages = append(out.stages, kept)
	}
	if len(out.all()) == 0 {
		return schedule{}, fmt.Errorf("%s: no test of these packages is in this run", strings.Join(want, ", "))
	}
	return out, nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(some, p) })
}

// whole gives packages their import paths.
func whole(packages []string) []string {
	out := make([]string, len(packages))
	for i, p := range packages {
		out[i] = strings.Replace(p, "./", module+"/", 1)
	}
	return out
}

// listPackages gives the packages that have tests, and those of them that start programs, whose
// results go's test cache must not give.
func listPackages() (all, uncached []string, err error) {
	if all, err = goList("./..."); err != nil {
		return nil, nil, err
	}
	out, err := exec.Command("go", "run", "./tools/uncached").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list packages that start programs: %w", err)
	}
	return all, strings.Fields(string(out)), nil
}

// goList gives the packages of patterns that have tests. A package that is not there is an error.
func goList(patterns ...string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %s: %w", strings.Join(patterns, " "), err)
	}
	return strings.Fields(string(out)), nil
}
