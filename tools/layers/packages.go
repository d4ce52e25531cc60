package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/ovn-sluice/sluice/"

// pkg is a package of this repository as go list knows it.
type pkg struct {
	// Path is without the module's; "." is at its root.
	Path    string `json:"ImportPath"`
	Imports []string
	// TestImports are those of its test files, in the package and beside it.
	TestImports, XTestImports []string
	// Deps are all that are linked with it.
	Deps []string
}

// inner is the path of a package of this repository without the module's, "." of that at its root. False: it is
// another one's.
func inner(path string) (string, bool) {
	if path+"/" == module {
		return ".", true
	}
	return strings.CutPrefix(path, module)
}

// builds are the build tags by which files are in a build or not.
var builds = []string{"", "guest,bench"}

// packages lists the packages below root, once for each build.
func packages(root string) ([]pkg, error) {
	var all []pkg
	for _, tags := range builds {
		list := exec.Command("go", "list", "-tags", tags, "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			return nil, fmt.Errorf("go list: %w", err)
		}
		for in := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p pkg
			if err := in.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list: %w", err)
			}
			p.Path, _ = inner(p.Path)
			all = append(all, p)
		}
	}
	return all, nil
}

// checkImports finds who imports what it may not, and what programs have in them that they may not.
func checkImports(all []pkg, r *report) {
	var found []string
	for _, p := range all {
		for _, imp := range p.Imports {
			found = append(found, importProblem(p.Path, imp, false))
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			found = append(found, importProblem(p.Path, imp, true))
		}
		found = append(found, linkProblems(p.Path, p.Deps)...)
	}
	slices.Sort(found)
	for _, problem := range slices.Compact(found) { // most packages are in both builds
		if problem != "" {
			r.problems = append(r.problems, problem)
		}
	}
}
