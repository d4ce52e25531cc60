package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// changed is what differs from a base: the working tree's files, or everything.
type changed struct {
	base  string
	files []string
	all   string // why everything counts as changed; empty: it does not
}

// changedPaths compares the working tree with the base.
func changedPaths(ctx context.Context) changed {
	head, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return changed{all: "this is no checkout"}
	}
	base := os.Getenv("SLUICE_BASE")
	if base == "" {
		if base, err = git(ctx, "merge-base", "HEAD", "origin/HEAD"); err != nil {
			return changed{all: "the remote's default branch is not known"}
		}
		if base == head {
			return changed{all: "HEAD is in the remote's default branch"}
		}
	}
	diff, err := git(ctx, "diff", "--name-only", base)
	if err != nil {
		return changed{all: fmt.Sprintf("%s cannot be compared: %v", base, err)}
	}
	others, err := git(ctx, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return changed{all: fmt.Sprintf("untracked files are not known: %v", err)}
	}
	return changed{base: base, files: strings.Fields(diff + "\n" + others)}
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

func (c changed) String() string {
	if c.all != "" {
		return "tests of all paths run: " + c.all
	}
	return fmt.Sprintf("%d files differ from %.12s", len(c.files), c.base)
}

// touches tells which of the directories has a changed file; empty: none.
func (c changed) touches(dirs []string) string {
	if c.all != "" {
		return c.all
	}
	for _, d := range dirs {
		for _, f := range c.files {
			if strings.HasPrefix(f, d+"/") {
				return d
			}
		}
	}
	return ""
}

// wants tells why postponed tests run: a path of theirs has changed, the lab, or one of the tests.
func (c changed) wants(l postponed) string {
	paths := l.paths
	if slices.Contains(labs, l.pkg) {
		paths = append(slices.Clone(paths), "test/lab")
	}
	if why := c.touches(paths); why != "" {
		return why
	}
	for _, f := range c.files {
		if !strings.HasPrefix(f, strings.TrimPrefix(l.pkg, "./")+"/") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it is deleted
		}
		for _, t := range l.tests {
			top, _, _ := strings.Cut(t, "/")
			if strings.Contains(string(text), "func "+top+"(") {
				return f
			}
		}
	}
	return ""
}
