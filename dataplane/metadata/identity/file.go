package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// version of the file's layout. A reader refuses what it does not know.
const version = 1

// maxFile bounds what is read, in bytes: a node has thousands of ports at most.
const maxFile = 64 << 20

// Path is where the file is below the daemon's state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "metadata", "identities.json") }

type document struct {
	Version  int       `json:"version"`
	Ports    []Port    `json:"ports"`
	Networks []Network `json:"networks,omitempty"`
}

// Write replaces the file as a whole, and makes its directory. What numbers mean is over
// with the maps that have them, when the machine ends: nothing waits for the disk.
func Write(path string, t *Table) error {
	text, err := json.Marshal(document{Version: version, Ports: t.Ports(), Networks: t.Networks()})
	if err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	if err := statefile.WriteRuntime(path, text); err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	return nil
}

// Read is what a file says now. The error wraps fs.ErrNotExist if there is none.
func Read(path string) (*Table, error) {
	t, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("metadata identities: %w", err)
	}
	return t, nil
}

func read(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parse(text []byte) (*Table, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d.Version != version {
		return nil, fmt.Errorf("it has version %d, and this program knows %d", d.Version, version)
	}
	return NewTable(d.Ports, d.Networks)
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
