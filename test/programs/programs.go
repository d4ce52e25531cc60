// Package programs gives tests the programs of cmd/, as `make build` builds them.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the programs that are not current, and returns the directory that has them. It is
// for a test whose package is two directories below the root.
func Build(names ...string) (dir string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command(filepath.Join(root, "tools", "build.sh"), names...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %v: %w\n%s", names, err, out)
	}
	return filepath.Join(root, "bin"), nil
}

// LinkInto builds the programs and links them into a directory. A later build does not change them
// there: the go command replaces files.
func LinkInto(dir string, names ...string) error {
	from, err := Build(names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := link(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// link makes a hard link, or a copy on another file system.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
