package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// version of the file's layout. A reader refuses what it does not know.
const version = 1

// maxFile bounds what is read, in bytes: a node has thousands of ports at most.
const maxFile = 64 << 20

// Path is where the file is below the daemon's state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "metadata", "identities.json") }

type document struct {
	Version int `json:"version"`
	// Boot is the node's start that it was written after (random(4)).
	Boot     string    `json:"boot"`
	Ports    []Port    `json:"ports"`
	Networks []Network `json:"networks,omitempty"`
}

// Write replaces the file as a whole, and makes its directory. What numbers mean is over
// with the maps that have them, when the node is rebooted: nothing waits for the disk.
func Write(path string, t *Table) error {
	now, err := boot()
	if err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	text, err := json.Marshal(document{Version: version, Boot: now, Ports: t.Ports(), Networks: t.Networks()})
	if err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	err = statefile.WriteRuntime(path, text)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		if overwrite(path, text) == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("metadata identities: %w", err)
	}
	return nil
}

// overwrite takes the place that the file has, on a file system that has no other: whoever
// has gone must not have an heir who gets its data. A reader may see a part of it, which it
// takes for none.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}

// Read is what a file says now. The error wraps fs.ErrNotExist if there is none, and if
// the node was rebooted since it was written: nobody has these numbers any more, and
// addresses may be others' by now.
func Read(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("metadata identities: %w", err)
	}
	defer f.Close()
	t, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("metadata identities: %w", err)
	}
	return t, nil
}

func read(f *os.File) (*Table, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", f.Name(), maxFile)
	}
	t, of, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	now, err := boot()
	if err == nil && of != now {
		err = fmt.Errorf("%s was written before the node was rebooted: %w", f.Name(), fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func parse(text []byte) (t *Table, boot string, err error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, "", err
	}
	if d.Version != version {
		return nil, "", fmt.Errorf("it has version %d, and this program knows %d", d.Version, version)
	}
	t, err = NewTable(d.Ports, d.Networks)
	return t, d.Boot, err
}

// boot is what the kernel calls the time since the node was booted.
var boot = sync.OnceValues(func() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
})

// Reader has the present table of a file. It is safe for concurrent use.
type Reader struct {
	path string

	mu sync.Mutex
	// file is held open, so that no other one gets its inode: by that a new one is known.
	file  *os.File
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
	t, err := r.open()
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.table == nil:
		r.err = nil
	case err != nil:
		r.err = fmt.Errorf("metadata identities: %w", err)
	default:
		r.table, r.err = t, nil
	}
	return r.table, r.err
}

// open reads the file that is there.
func (r *Reader) open() (*Table, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if r.file != nil {
		_ = r.file.Close()
	}
	r.file, r.was = f, info
	return read(f)
}
