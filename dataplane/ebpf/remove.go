package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// Pins lists what Sluice pinned in the directory of a plane, or wraps ErrNewerLayout. Other names are not Sluice's.
func Pins(dir string, plane Plane) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	specs, err := plane.mapSpecs(DefaultLimits())
	if err == nil {
		_, err = pinned.Older(dir, specs)
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), pinned.AsideSuffix)
		if plane.pins(name, specs) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// Remove detaches the programs from all devices of this namespace and removes the pins. It refuses while a daemon has
// the directory. Delete the devices first: a device that is left drops its packets while it has its clsact qdisc.
func Remove(dir string, plane Plane) error {
	pins, err := Pins(dir, plane)
	if err != nil || len(pins) == 0 {
		return err
	}
	lock, err := pinned.Lock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := plane.detach(dir); err != nil {
		return err
	}
	for _, p := range plane.programs() {
		if err := p.at(dir).UnfilterAll(); err != nil {
			return err
		}
	}
	return pinned.RemoveDir(dir, pins)
}
