// Package pins writes down what is pinned in a directory of a bpffs, so that two
// moments can be compared byte by byte.
package pins

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// volatile are the maps that a packet may change at any time; of them only the
// ids are written down.
var volatile = []string{"affinity", "asked", "buckets", "counters", "drops", "flow_front", "flows", "fragments", "heartbeat", "prefix_cache", "rates", "samples", "scratch", "sessions", "steered", "trace", "unrecorded"}

// Dump is a line for every pin with the id of its object, and one for every row
// that is not all zeros, of the directories in it, too. A directory that is not there
// is empty.
func Dump(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return "", nil
	}
	var out strings.Builder
	for _, e := range entries {
		what := dump
		if e.IsDir() {
			what = Dump
		}
		text, err := what(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("pin %s: %w", e.Name(), err)
		}
		if e.IsDir() {
			text = "is a directory\n" + text
		}
		fmt.Fprintf(&out, "%s %s", e.Name(), text)
	}
	return out.String(), err
}

func dump(path string) (string, error) {
	name := filepath.Base(path)
	if strings.HasPrefix(name, "prog_") {
		p, err := ebpf.LoadPinnedProgram(path, nil)
		if err != nil {
			return "", err
		}
		defer p.Close()
		info, err := p.Info()
		if err != nil {
			return "", err
		}
		id, _ := info.ID()
		return fmt.Sprintf("program %d\n", id), nil
	}
	if strings.HasPrefix(name, "link_") {
		l, err := link.LoadPinnedLink(path, nil)
		if err != nil {
			return "", err
		}
		defer l.Close()
		info, err := l.Info()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("link %d of program %d\n", info.ID, info.Program), nil
	}
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return "", err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return "", err
	}
	id, _ := info.ID()
	head := fmt.Sprintf("map %d of %d rows\n", id, m.MaxEntries())
	base, _, _ := strings.Cut(name, "_v")
	if slices.Contains(volatile, base) {
		return head, nil
	}
	rows, err := rows(m)
	return head + strings.Join(rows, ""), err
}

// rows are in the order of their text.
func rows(m *ebpf.Map) ([]string, error) {
	if memory, err := m.Memory(); err == nil {
		b := make([]byte, memory.Size())
		if _, err := memory.ReadAt(b, 0); err != nil {
			return nil, err
		}
		return words(b), nil
	}
	var out []string
	var key, value []byte
	it := m.Iterate()
	for it.Next(&key, &value) {
		if m.Type() != ebpf.Array || !zero(value) {
			out = append(out, fmt.Sprintf("  %x %x\n", key, value))
		}
	}
	slices.Sort(out)
	return out, it.Err()
}

// words are the parts of shared memory that are not all zeros.
func words(b []byte) []string {
	const size = 16
	var out []string
	for at := 0; at < len(b); at += size {
		if w := b[at:min(at+size, len(b))]; !zero(w) {
			out = append(out, fmt.Sprintf("  %08x %x\n", at, w))
		}
	}
	return out
}

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }
