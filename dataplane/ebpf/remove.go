package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// Pins lists what Sluice pinned in a directory. Names of another form are not
// Sluice's and are not listed.
func Pins(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	specs, err := mapSpecs(DefaultLimits())
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), rebuildSuffix)
		_, ours := specs[name]
		if ours || outdated(name, specs) || slices.ContainsFunc([]string{"prog_", "const_", "link_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// Remove takes the programs off all devices of this namespace and removes the
// pins. It refuses while a daemon has the directory. Delete the devices first: one
// that is left drops what comes in, but only as long as it has its clsact qdisc.
func Remove(dir string) error {
	pins, err := Pins(dir)
	if err != nil || len(pins) == 0 {
		return err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := errors.Join(detachUnderlay(dir), detachVTEPGuard(dir)); err != nil {
		return err
	}
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	for _, l := range links {
		for _, p := range allPrograms() {
			if err := detachClsact(p, l.Attrs().Index); err != nil {
				return fmt.Errorf("device %s: %w", l.Attrs().Name, err)
			}
		}
	}
	for _, pin := range pins {
		if err := os.Remove(pin); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove pin: %w", err)
		}
	}
	// Something foreign in it keeps the directory.
	if err := os.Remove(dir); err != nil {
		if left, _ := os.ReadDir(dir); len(left) == 0 {
			return fmt.Errorf("remove pin directory: %w", err)
		}
	}
	return nil
}
