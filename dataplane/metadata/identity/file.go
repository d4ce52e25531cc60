package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// version of the file's layout. A reader refuses what it does not know.
const version = 1

// Port is a port whose requests are steered.
type Port struct {
	// Name is the Port_Binding's logical_port.
	Name string `json:"port"`
	// Instance, Project and Network are those of a request's answer; Instance is empty
	// as long as OVN does not name it.
	Instance string `json:"instance,omitempty"`
	Project  string `json:"project,omitempty"`
	Network  string `json:"network,omitempty"`
	// Number6 is the port's number for IPv6; 0: it has none.
	Number6 Number `json:"number6,omitempty"`
	// Numbers4 are those of its IPv4 addresses.
	Numbers4 map[Number]netip.Addr `json:"numbers4,omitempty"`
}

// Table is what all numbers of a node mean.
type Table struct {
	ports []Port
	four  map[Number]behind
	six   map[Number]*Port
}

type behind struct {
	port  *Port
	guest netip.Addr
}

// NewTable joins ports. Two with one number are an error: neither may have it.
func NewTable(ports []Port) (*Table, error) {
	t := &Table{ports: slices.Clone(ports), four: map[Number]behind{}, six: map[Number]*Port{}}
	for i := range t.ports {
		p := &t.ports[i]
		if p.Number6 != 0 {
			if other := t.six[p.Number6]; other != nil {
				return nil, fmt.Errorf("ports %s and %s have the IPv6 number %d", other.Name, p.Name, p.Number6)
			}
			t.six[p.Number6] = p
		}
		for n, guest := range p.Numbers4 {
			if other := t.four[n].port; other != nil {
				return nil, fmt.Errorf("ports %s and %s have the IPv4 number %d", other.Name, p.Name, n)
			}
			t.four[n] = behind{p, guest}
		}
	}
	return t, nil
}

// Find tells whose an address is, and which one the guest itself has.
func (t *Table) Find(a netip.Addr) (p Port, guest netip.Addr, ok bool) {
	n, guest, ok := Parse(a)
	if !ok || t == nil {
		return Port{}, netip.Addr{}, false
	}
	if guest.IsValid() {
		if p := t.six[n]; p != nil {
			return *p, guest, true
		}
		return Port{}, netip.Addr{}, false
	}
	b, ok := t.four[n]
	if !ok {
		return Port{}, netip.Addr{}, false
	}
	return *b.port, b.guest, true
}

// Ports are all of them, by name.
func (t *Table) Ports() []Port {
	if t == nil {
		return nil
	}
	out := slices.Clone(t.ports)
	slices.SortFunc(out, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	return out
}

type document struct {
	Version int    `json:"version"`
	Ports   []Port `json:"ports"`
}

// Write replaces the file as a whole.
func Write(path string, t *Table) error {
	text, err := json.Marshal(document{Version: version, Ports: t.Ports()})
	if err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	if err := statefile.Write(path, text); err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	return nil
}

func read(path string) (*Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Version != version {
		return nil, fmt.Errorf("%s has version %d, and this program knows %d", path, d.Version, version)
	}
	return NewTable(d.Ports)
}

// Reader has the present table of a file. It is safe for concurrent use.
type Reader struct {
	path string

	mu    sync.Mutex
	was   os.FileInfo
	table *Table
	err   error
}

// NewReader makes one. The file may come later: until then nobody is known.
func NewReader(path string) *Reader { return &Reader{path: path} }

// Table is what the file says now. A file that cannot be read leaves the last table as it
// is, with an error; a look costs one stat(2) as long as the file stays the same.
func (r *Reader) Table() (*Table, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) && r.table == nil {
		return nil, nil
	}
	if err != nil {
		return r.table, fmt.Errorf("metadata identities: %w", err)
	}
	if r.was != nil && os.SameFile(r.was, info) && r.was.ModTime().Equal(info.ModTime()) && r.was.Size() == info.Size() {
		return r.table, r.err
	}
	r.was = info
	t, err := read(r.path)
	if err != nil {
		r.err = fmt.Errorf("metadata identities: %w", err)
		return r.table, r.err
	}
	r.table, r.err = t, nil
	return t, nil
}
