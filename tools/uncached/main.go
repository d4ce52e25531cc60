// Command uncached prints the packages whose tests must not pass from go's test cache:
// those that can start a program. The cache's key knows the test binary, its arguments and
// the files of this module that it read. It does not know ovsdb-server, FRR, the programs
// of this repository or what else such a test runs.
//
//	uncached [-why] [PACKAGE...]
//
// The rule is read from the imports, so that no list has to be kept: os/exec is imported by the package,
// by its tests, or by any package outside the standard library below these. tools/layers sees to it
// that nothing starts a program by another call. The rule errs to the side of running: a test
// that could start a program and does not is printed, too.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// listed is what go list says of a package, or of a test's binary, whose name ends in .test.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string // all below, not only those that the package itself imports
}

// uncached maps each package whose test can start a program to those below it that import os/exec.
func uncached(packages []listed) map[string][]string {
	starts := map[string]bool{}
	for _, p := range packages {
		starts[p.ImportPath] = !p.Standard && slices.Contains(p.Imports, "os/exec")
	}
	found := map[string][]string{}
	for _, p := range packages {
		tested, isTest := strings.CutSuffix(p.ImportPath, ".test")
		if !isTest {
			continue
		}
		for _, d := range p.Deps {
			if starts[d] {
				found[tested] = append(found[tested], d)
			}
		}
	}
	return found
}

func list(patterns []string) ([]listed, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	cmd := exec.Command("go", append([]string{"list", "-deps", "-test", "-json=ImportPath,Standard,Imports,Deps"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

func main() {
	why := flag.Bool("why", false, "print after each package what below it starts programs")
	flag.Parse()
	packages, err := list(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "uncached:", err)
		os.Exit(1)
	}
	found := uncached(packages)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if *why {
			name += ": " + strings.Join(found[name], ", ")
		}
		fmt.Println(name)
	}
}
