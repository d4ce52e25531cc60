package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reports are files that tests write beside their result.
var reports = []struct{ title, file string }{
	{"virtual machines", "build/vm.txt"},
	{"upgrade of a running sluiced", "build/upgrade.txt"},
}

// summary prints how all has ended, as go test does: a line for each package.
func (r *runner) summary(ctx context.Context) error {
	fmt.Fprintf(r.out, "\n== summary, %d s ==\n", int(time.Since(r.began).Seconds()))
	for _, s := range r.seeds {
		fmt.Fprintln(r.out, s)
	}
	for _, report := range reports {
		if text, err := os.ReadFile(report.file); err == nil && len(text) > 0 {
			fmt.Fprintf(r.out, "\n== %s ==\n%s\n", report.title, text)
		}
	}
	failed := append(r.lines("", func(x result) bool { return x.part.byPath == "" }),
		r.lines("\n== only since a path has changed ==\n", func(x result) bool { return x.part.byPath != "" })...)
	fmt.Fprintf(r.out, "\nthe cache has %s\n", cacheSize())
	if ctx.Err() != nil {
		return errors.New("interrupted: what had not ended counts as FAIL")
	}
	if len(r.results) == 0 {
		return errors.New("nothing has run")
	}
	if len(failed) > 0 {
		return fmt.Errorf("FAIL: %s (the whole output: build/test.log)", strings.Join(failed, ", "))
	}
	fmt.Fprintln(r.out, "PASS")
	return nil
}

// lines prints a line for each result, and gives the names of those that have failed.
func (r *runner) lines(title string, which func(result) bool) (failed []string) {
	for _, x := range r.results {
		if !which(x) {
			continue
		}
		fmt.Fprint(r.out, title)
		title = ""
		word, took, more := "ok  ", fmt.Sprintf("%.3fs", x.took.Seconds()), ""
		name := cmp.Or(x.pkg, x.part.name)
		if x.failed {
			word = "FAIL"
			if x.pkg != "" || !slices.ContainsFunc(r.results, func(o result) bool { return o.failed && o.pkg != "" && o.part.name == x.part.name }) {
				failed = append(failed, strings.TrimPrefix(name, module+"/"))
			}
		}
		if x.cached {
			took = "(cached)"
		}
		if x.part.byPath != "" {
			more = "\t" + strings.Join(x.part.run, ", ")
		}
		fmt.Fprintf(r.out, "%s\t%s\t%s%s\n", word, name, took, more)
	}
	return failed
}

// cacheSize says how large the directory of downloads and of what is made of them is.
func cacheSize() string {
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "no directory: " + err.Error()
		}
		dir = filepath.Join(user, "sluice")
	}
	out, err := exec.Command("du", "-sh", dir).Output()
	if err != nil {
		return fmt.Sprintf("no size: du %s: %v", dir, err)
	}
	size, _, _ := strings.Cut(string(out), "\t")
	return size + " in " + dir
}
