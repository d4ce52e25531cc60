package pinned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// RemoveStalePages removes the pins that carry the number of a map which is none of these: pages of
// arrays of maps, and arrays of what programs call. No link has a program that uses those, and when they
// are removed no packet runs one.
func RemoveStalePages(dir string, maps map[string]*ebpf.Map, programs map[string]*Program) error {
	used, err := numbered(maps, programs)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read pin directory: %w", err)
	}
	var stale []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), AsideSuffix), pagePrefix)
		if !ok {
			continue
		}
		parts := strings.Split(rest, "_")
		if len(parts) > 2 {
			id, err := strconv.ParseUint(parts[len(parts)-2], 10, 32)
			if is, known := used[strings.Join(parts[:len(parts)-2], "_")]; err == nil && known && is == ebpf.MapID(id) {
				continue
			}
		}
		stale = append(stale, filepath.Join(dir, e.Name()))
	}
	if len(stale) == 0 {
		return nil
	}
	if err := waitForRuns(); err != nil {
		return err
	}
	for _, pin := range stale {
		if err := os.Remove(pin); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a page of a map that has gone: %w", err)
		}
	}
	return nil
}

// numbered are the numbers in the names of pins: of arrays of maps, and of what programs call.
func numbered(maps map[string]*ebpf.Map, programs map[string]*Program) (map[string]ebpf.MapID, error) {
	of := map[string]*ebpf.Map{}
	for name, m := range maps {
		if m.Type() == ebpf.ArrayOfMaps {
			of[name] = m
		}
	}
	for name, p := range programs {
		if p != nil && p.call != nil {
			of[name] = p.call.array
		}
	}
	out := map[string]ebpf.MapID{}
	for name, m := range of {
		id, err := numberOf(m)
		if err != nil {
			return nil, fmt.Errorf("map of %s: %w", name, err)
		}
		out[name] = id
	}
	return out, nil
}

func numberOf(m *ebpf.Map) (ebpf.MapID, error) {
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	id, _ := info.ID()
	return id, nil
}
