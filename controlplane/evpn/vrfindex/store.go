package vrfindex

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// Max is the largest index.
const Max = 65535

// ErrFull is returned when all 65535 numbers are taken.
var ErrFull = errors.New("all 65535 VRF indices are taken")

// Store is the allocator. It is safe for use by several goroutines.
type Store struct {
	path string

	mu    sync.Mutex
	taken map[intent.VNI]uint16
	inUse map[uint16]intent.VNI
	// freed holds released numbers, the oldest first; next is the smallest
	// number that was never given out.
	freed []uint16
	next  uint32
	// unsaved: the file does not say what is above.
	unsaved bool
	// damaged is set once: what was wrong with the file that was found.
	damaged error
}

// DamagedError: the file is none of ours, or not whole.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("VRF indices: %s: %v; a start sets it aside as %s%s and numbers the VRFs anew that the data plane does not show", e.Path, e.Err, e.Path, aside)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// aside is added to the name of a file that cannot be used.
const aside = ".damaged"

// Damaged is what was wrong with the file that was found; nil if nothing.
func (s *Store) Damaged() error { return s.damaged }

// file is the layout on disk.
type file struct {
	Version int                   `json:"version"`
	Indices map[intent.VNI]uint16 `json:"indices"`
	Freed   []uint16              `json:"freed,omitempty"`
}

const version = 1

// Open reads the file at path; one that is not there is an empty one. seed is
// what the data plane shows: it wins where the file disagrees, since packets are
// counted under it. A damaged one is set aside, see Damaged: what forwards goes on. That
// of a newer program is an error. An empty path keeps nothing on disk.
func Open(path string, seed map[intent.VNI]uint16) (*Store, error) {
	s, err := Peek(path, seed)
	if err != nil {
		return nil, err
	}
	s.path = path
	if s.damaged != nil {
		if err := os.Rename(path, path+aside); err != nil {
			return nil, errors.Join(s.damaged, err)
		}
		s.unsaved = true
	}
	return s, nil
}

// Peek is Open for one who only looks: numbers that it gives out are kept
// nowhere.
func Peek(path string, seed map[intent.VNI]uint16) (*Store, error) {
	s := &Store{taken: map[intent.VNI]uint16{}, inUse: map[uint16]intent.VNI{}, next: 1}
	f, err := read(path)
	if bad := (*DamagedError)(nil); errors.As(err, &bad) {
		s.damaged = err
	} else if err != nil {
		return nil, err
	}
	for vni, index := range seed {
		if err := s.take(vni, index); err != nil {
			return nil, fmt.Errorf("VRF index of VNI %d as the data plane shows it: %w", vni, err)
		}
	}
	for _, vni := range slices.Sorted(maps.Keys(f.Indices)) {
		index := f.Indices[vni]
		if _, ok := s.taken[vni]; ok {
			continue
		}
		if _, ok := s.inUse[index]; ok {
			continue // another VNI has the number
		}
		if err := s.take(vni, index); err != nil {
			return nil, fmt.Errorf("VRF index of VNI %d in %s: %w", vni, path, err)
		}
	}
	for n := range s.inUse {
		s.next = max(s.next, uint32(n)+1)
	}
	for _, n := range f.Freed {
		s.next = max(s.next, uint32(n)+1)
	}
	s.restoreFreed(f.Freed)
	return s, nil
}

// restoreFreed keeps the order of the file and appends the numbers below next
// that nobody has.
func (s *Store) restoreFreed(order []uint16) {
	seen := map[uint16]bool{0: true}
	for _, n := range order {
		if _, used := s.inUse[n]; !used && !seen[n] {
			seen[n] = true
			s.freed = append(s.freed, n)
		}
	}
	for n := uint32(1); n < s.next; n++ {
		if _, used := s.inUse[uint16(n)]; !used && !seen[uint16(n)] {
			s.freed = append(s.freed, uint16(n))
		}
	}
}

func read(path string) (file, error) {
	var f file
	if path == "" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, &DamagedError{path, err}
	}
	err = json.Unmarshal(b, &f)
	if err == nil && f.Version > version {
		return f, fmt.Errorf("read VRF indices: %s has layout %d of a newer program, this one knows %d; remove the file to number the VRFs anew", path, f.Version, version)
	}
	if err == nil && f.Version < version {
		err = errors.New("it names no layout")
	}
	for vni, index := range f.Indices {
		if index == 0 || !vni.ValidVRF() {
			err = cmp.Or(err, fmt.Errorf("index %d of VNI %d", index, vni))
		}
	}
	if err != nil {
		return file{}, &DamagedError{path, err}
	}
	return f, nil
}

func (s *Store) take(vni intent.VNI, index uint16) error {
	if index == 0 || !vni.ValidVRF() {
		return fmt.Errorf("index %d is outside 1..%d", index, Max)
	}
	if other, ok := s.inUse[index]; ok && other != vni {
		return fmt.Errorf("index %d belongs to VNI %d too", index, other)
	}
	s.taken[vni], s.inUse[index] = index, vni
	return nil
}

// Index is the VNI's number. A new one is on disk after the next [Store.Commit];
// it must not leave the process before.
func (s *Store) Index(vni intent.VNI) (uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.taken[vni]; ok {
		return n, nil
	}
	n, err := s.pick()
	if err != nil {
		return 0, err
	}
	s.taken[vni], s.inUse[n], s.unsaved = n, vni, true
	return n, nil
}

// Commit writes the file when a number was given out or released since it was
// written last: once for all of them, since each write waits for the disk. When
// it fails the numbers stay as they are, and the next Commit tries again.
func (s *Store) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unsaved {
		return nil
	}
	return s.write()
}

// pick takes a number never used, and only then the one free for longest.
func (s *Store) pick() (uint16, error) {
	if s.next <= Max {
		n := uint16(s.next)
		s.next++
		return n, nil
	}
	if len(s.freed) == 0 {
		return 0, ErrFull
	}
	n := s.freed[0]
	s.freed = s.freed[1:]
	return n, nil
}

// Release frees the VNI's number. The file follows with the next Commit; a crash
// between the two keeps the number, which is harmless.
func (s *Store) Release(vni intent.VNI) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(vni)
}

func (s *Store) release(vni intent.VNI) {
	if n, ok := s.taken[vni]; ok {
		delete(s.taken, vni)
		delete(s.inUse, n)
		s.freed, s.unsaved = append(s.freed, n), true
	}
}

// Retain releases every VNI that keep does not name, the lowest first, and
// commits: for the moment when all sources are in sync, after a restart.
func (s *Store) Retain(keep func(intent.VNI) bool) error {
	s.mu.Lock()
	for _, vni := range slices.Sorted(maps.Keys(s.taken)) {
		if !keep(vni) {
			s.release(vni)
		}
	}
	s.mu.Unlock()
	return s.Commit()
}

// write replaces the file.
func (s *Store) write() error {
	if s.path == "" {
		s.unsaved = false
		return nil
	}
	b, err := json.Marshal(file{Version: version, Indices: s.taken, Freed: s.freed})
	if err == nil {
		err = statefile.Write(s.path, b)
	}
	if err != nil {
		return fmt.Errorf("write VRF indices: %w", err)
	}
	s.unsaved = false
	return nil
}
