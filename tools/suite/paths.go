package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// changed is what differs from a base: the working tree's files, or everything.
type changed struct {
	base  string
	files []string
	all   string // why everything counts as changed; empty: it does not

	tree   *tree             // nil where all is set
	inputs map[string]inputs // of packages
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
	diff, err := git(ctx, "diff", "--name-only", "--no-renames", "-z", base) // a renamed file is gone where it was
	if err != nil {
		return changed{all: fmt.Sprintf("%s cannot be compared: %v", base, err)}
	}
	others, err := git(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return changed{all: fmt.Sprintf("untracked files are not known: %v", err)}
	}
	c := changed{base: base, files: strings.FieldsFunc(diff+"\x00"+others, func(r rune) bool { return r == 0 })}
	if err := c.readInputs(); err != nil {
		return changed{all: fmt.Sprintf("what tests are built of is not known: %v", err)}
	}
	return c
}

// readInputs finds what the postponed tests depend on.
func (c *changed) readInputs() (err error) {
	if c.tree, err = readTree(); err != nil {
		return err
	}
	c.inputs = map[string]inputs{}
	for _, l := range later {
		if c.inputs[l.pkg], err = c.tree.of(l.pkg); err != nil {
			return err
		}
	}
	return nil
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

// wants tells why postponed tests run: a file of theirs that has changed. Empty: none has.
func (c changed) wants(l postponed) string {
	if c.all != "" {
		return c.all
	}
	for _, f := range c.files {
		if l.paths != nil && matches(f, l.paths) || l.paths == nil && c.tree.has(c.inputs[l.pkg], f) {
			return f
		}
	}
	return ""
}

// leftOut says which tests wait for the night.
func (c changed) leftOut() string {
	var b strings.Builder
	for _, l := range later {
		if c.wants(l) == "" {
			fmt.Fprintf(&b, "left to the night: %s\n", l.name())
		}
	}
	return b.String()
}
