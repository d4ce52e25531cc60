package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Image is a root disk with packages of a Debian release.
type Image struct{ dir string }

// DebianImage finds the root disk of a Debian release, bookworm or trixie, and
// makes it if it is not in the cache. Script is tools/image.sh.
func DebianImage(ctx context.Context, script, suite string) (Image, error) {
	cmd := exec.CommandContext(ctx, script, suite)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return Image{}, fmt.Errorf("root disk of Debian %s: %w\n%s", suite, err, problems.String())
	}
	return Image{dir: strings.TrimSpace(string(out))}, nil
}

func (i Image) disk() string { return filepath.Join(i.dir, "root.ext4") }

// Version is the version of a package on the disk.
func (i Image) Version(pkg string) (string, error) {
	list, err := os.ReadFile(filepath.Join(i.dir, "versions"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(list)) {
		if name, version, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == pkg {
			return version, nil
		}
	}
	return "", fmt.Errorf("%s has no package %s", i.dir, pkg)
}
