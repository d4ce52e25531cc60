package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// inputs are the files whose change may change a test's result: those of the packages that are linked
// into its binary, and into the programs and the tests of other packages that it runs, and the scripts
// and other files that it names. They are read from the code, so that no list has to be kept.
//
// The rule errs to the side of running: a name of a program, a script or a path counts wherever it stands
// in a text, a comment too.
type inputs struct {
	packages map[string]bool // directories; false: linked, without its own tests
	paths    map[string]bool // directories, with all below, and files
}

// anyTest are files that each test is built with.
var anyTest = []string{"go.mod", "go.sum"}

// tree knows the packages of the module, by directories relative to its root, which is the working
// directory.
type tree struct {
	packages map[string]*node
}

// node is a package.
type node struct {
	deps, testDeps []string // directories of what is linked into it, and into its test
	files, tests   []string // its sources, relative to the root
}

// buildTags are those of tests that run elsewhere: their files count, too, beside those without them.
const buildTags = "guest,bench"

// listed is what the go command says of a package, or of a test's binary, whose name ends in .test.
type listed struct {
	ImportPath, ForTest                      string
	Deps, GoFiles, TestGoFiles, XTestGoFiles []string
}

// readTree asks the go command what is linked into what.
func readTree() (*tree, error) {
	t := &tree{packages: map[string]*node{}}
	for _, tags := range []string{"", buildTags} {
		cmd := exec.Command("go", "list", "-deps", "-test", "-tags", tags,
			"-json=ImportPath,ForTest,Deps,GoFiles,TestGoFiles,XTestGoFiles", "./...")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list -deps: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read go list -deps: %w", err)
			}
			t.add(p)
		}
	}
	return t, nil
}

func (t *tree) add(p listed) {
	tested, isTest := strings.CutSuffix(p.ImportPath, ".test")
	dir, ours := directory(tested)
	if !ours || p.ForTest != "" {
		return // a variant of a package that is there without it, too
	}
	n := t.packages[dir]
	if n == nil {
		n = &node{}
		t.packages[dir] = n
	}
	if isTest {
		n.testDeps = append(n.testDeps, directories(p.Deps)...)
		return
	}
	n.deps = append(n.deps, directories(p.Deps)...)
	for _, f := range p.GoFiles {
		n.files = append(n.files, path.Join(dir, f))
	}
	for _, f := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		n.tests = append(n.tests, path.Join(dir, f))
	}
}

// directory is where a package of this module is.
func directory(importPath string) (dir string, ours bool) {
	importPath, _, _ = strings.Cut(importPath, " ") // of a variant: "path [path.test]"
	if importPath == module {
		return ".", true
	}
	importPath = strings.TrimSuffix(importPath, "_test") // tests outside of their package
	return strings.CutPrefix(importPath, module+"/")
}

func directories(importPaths []string) (out []string) {
	for _, p := range importPaths {
		if dir, ours := directory(p); ours {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// of gives the inputs of a package's tests.
func (t *tree) of(pkg string) (inputs, error) {
	in := inputs{packages: map[string]bool{}, paths: map[string]bool{}}
	for _, f := range anyTest {
		in.paths[f] = true
	}
	return in, t.test(in, path.Clean(pkg))
}

// test adds what a test's binary depends on, and what it runs.
func (t *tree) test(in inputs, dir string) error {
	n := t.packages[dir]
	if n == nil {
		return fmt.Errorf("%s is no package", dir)
	}
	if in.packages[dir] {
		return nil
	}
	in.packages[dir] = true
	for _, d := range append(slices.Clone(n.testDeps), dir) {
		in.link(d)
		if err := t.scripts(in, t.packages[d].files); err != nil {
			return err
		}
	}
	if err := t.scripts(in, n.tests); err != nil {
		return err
	}
	return t.named(in, slices.Concat(n.files, n.tests))
}

// link adds a package without its tests.
func (in inputs) link(dir string) {
	if _, linked := in.packages[dir]; !linked {
		in.packages[dir] = false
	}
}

// program adds what is linked into a program. One that is made of packages of test/ runs what these name.
func (t *tree) program(in inputs, dir string) error {
	if _, done := in.packages[dir]; done {
		return nil
	}
	in.link(dir)
	for _, d := range t.packages[dir].deps {
		in.link(d)
		if err := t.scripts(in, t.packages[d].files); err != nil {
			return err
		}
		if !isLab(module + "/" + d) {
			continue
		}
		if err := t.named(in, t.packages[d].files); err != nil {
			return err
		}
	}
	return nil
}

var quoted = regexp.MustCompile("[\"`]([A-Za-z0-9_./-]+)[\"`]")

// named adds the programs and paths that files name: "sluiced", "../evpn",
// "../../deploy/systemd/sluiced.service".
func (t *tree) named(in inputs, files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			candidates := []string{path.Join("cmd", name)}
			switch {
			case strings.HasPrefix(name, "../"), strings.HasPrefix(name, "./"):
				candidates = []string{path.Join(path.Dir(file), name), path.Clean(name)}
			case strings.Contains(name, "/"), t.packages[candidates[0]] == nil:
				continue
			}
			for _, p := range candidates {
				if err := t.path(in, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// path adds a path that is named: a program, the tests of a package, or whatever else is there.
func (t *tree) path(in inputs, p string) error {
	switch {
	case p == "." || strings.HasPrefix(p, ".."):
		return nil
	case t.packages[p] != nil && strings.HasPrefix(p, "cmd/"):
		return t.program(in, p)
	case t.packages[p] != nil:
		return t.test(in, p)
	}
	if _, err := os.Stat(p); err == nil {
		in.paths[p] = true
	}
	return nil
}

var script = regexp.MustCompile(`\b[a-z]+\.sh\b`)

// scripts adds the scripts of tools that files name, and those that these name.
func (t *tree) scripts(in inputs, files []string) error {
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for _, name := range script.FindAllString(string(text), -1) {
			p := path.Join("tools", name)
			if _, err := os.Stat(p); err != nil || in.paths[p] {
				continue
			}
			in.paths[p] = true
			if err := t.scripts(in, []string{p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// has tells whether a file is among the inputs: a file of a package, or of a directory below it that is
// no package (testdata); its tests only where they run.
func (t *tree) has(in inputs, file string) bool {
	for dir := file; dir != "."; dir = path.Dir(dir) {
		if in.paths[dir] {
			return true
		}
	}
	dir := path.Dir(file)
	for t.packages[dir] == nil {
		if dir == "." {
			return false
		}
		dir = path.Dir(dir)
	}
	tests, linked := in.packages[dir]
	return linked && (tests || !strings.HasSuffix(file, "_test.go")) && (dir != "." || path.Ext(file) == ".go" || file == "VERSION")
}

// String lists them: what changes the result of a test.
func (in inputs) String() string {
	out := slices.Concat(slices.Collect(maps.Keys(in.packages)), slices.Collect(maps.Keys(in.paths)))
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// matches tells whether a file is one of patterns: directories, files, or patterns as of path.Match.
func matches(file string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := filepath.Match(p, file)
		return ok && err == nil || strings.HasPrefix(file, p+"/")
	})
}
