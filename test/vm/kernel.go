package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kernel is an unpacked kernel package.
type Kernel struct {
	// Release is what uname -r says, such as 6.1.0-50-cloud-amd64.
	Release string
	dir     string
}

// Debian finds the cloud kernel of a Debian release, bookworm (6.1) or trixie
// (6.12), and downloads it if it is not in the cache. Script is tools/kernel.sh.
func Debian(ctx context.Context, script, suite string) (Kernel, error) {
	cmd := exec.CommandContext(ctx, script, suite)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel of Debian %s: %w\n%s", suite, err, problems.String())
	}
	k := Kernel{dir: strings.TrimSpace(string(out))}
	images, err := filepath.Glob(filepath.Join(k.dir, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return Kernel{}, fmt.Errorf("kernel of Debian %s: %d images in %s", suite, len(images), k.dir)
	}
	k.Release = strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	return k, nil
}

func (k Kernel) image() string { return filepath.Join(k.dir, "boot", "vmlinuz-"+k.Release) }

// modules reads modules and what they depend on, in an order in which they can
// be inserted. A module that is built in is passed over.
func (k Kernel) modules(names []string) (order []string, err error) {
	dir := filepath.Join(k.dir, "lib", "modules", k.Release)
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("dependencies of modules: %w", err)
	}
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("modules that are built in: %w", err)
	}
	needs := map[string][]string{} // by path below dir
	byName := map[string]string{}
	for line := range strings.Lines(string(dep)) {
		file, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		needs[file], byName[moduleName(file)] = strings.Fields(list), file
	}
	inKernel := map[string]bool{}
	for line := range strings.Lines(string(builtin)) {
		inKernel[moduleName(strings.TrimSpace(line))] = true
	}
	var errs []error
	seen := map[string]bool{}
	add := func(file string) {
		if !seen[file] {
			seen[file] = true
			order = append(order, filepath.Join(dir, file))
		}
	}
	for _, name := range names {
		file, ok := byName[name]
		switch {
		case ok:
			// modules.dep names what has to come first last.
			for i := len(needs[file]) - 1; i >= 0; i-- {
				add(needs[file][i])
			}
			add(file)
		case !inKernel[name]:
			errs = append(errs, fmt.Errorf("kernel %s has no module %s", k.Release, name))
		}
	}
	return order, errors.Join(errs...)
}

func moduleName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".ko") }
