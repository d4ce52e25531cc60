// Command layers checks the rules of this repository that a compiler does not:
// who may import whom, what a program may have in it, which package alone knows a library, no skipped tests, no
// program started past os/exec, no notes to oneself, a comment for every package. A file or
// a package that is too large fails, and so does a name that the glossary has another word for, and
// ARCHITECTURE.md where it is not as the code. Long functions and files of tests are reported and do not fail.
//
//	layers [DIRECTORY]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	r := &report{}
	all, err := packages(root)
	if err := errors.Join(check(root, r), err, checkArchitecture(root, all, r)); err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(2)
	}
	checkImports(all, r)
	for _, n := range r.notes {
		fmt.Println("note:", n)
	}
	for _, p := range r.problems {
		fmt.Println(p)
	}
	if len(r.problems) > 0 {
		fmt.Printf("layers: %d problems\n", len(r.problems))
		os.Exit(1)
	}
}
