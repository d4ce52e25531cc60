package vrfindex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// Max is the largest index.
const Max = 65535

// ErrFull is returned when all 65535 numbers are taken.
var ErrFull = errors.New("all 65535 VRF indices are taken")

// Store is the allocator. It is safe for use by several goroutines.
type Store struct {
	path  string
	write func(path string, content []byte) error
	// changed has a message when there is something to write.
	changed chan struct{}

	writing sync.Mutex // held while the file is written, and taken before mu

	mu    sync.Mutex
	taken map[intent.VNI]uint16
	inUse map[uint16]intent.VNI
	// routers are those that have a VNI on this node, the one that came first in front.
	routers map[intent.VNI][]string
	// freed holds released numbers, the oldest first; next is the smallest
	// number that was never given out.
	freed []uint16
	next  uint32
	// changes counts the changes of what is above, saved those that the file has.
	changes, saved uint64
	// fresh are the numbers that no write was tried with, by the change that gave them out.
	fresh map[intent.VNI]uint64
	// damaged is set once: what was wrong with the file that was found.
	damaged error
}

// DamagedError: the file is none of ours, or not whole.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("VRF indices: %s: %v; a start renames it to %s%s and gives new numbers to the VRFs that the data plane does not show", e.Path, e.Err, e.Path, aside)
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
	// Routers are UUIDs of the Southbound database. Programs of before kept none.
	Routers map[intent.VNI][]string `json:"routers,omitempty"`
	Freed   []uint16                `json:"freed,omitempty"`
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
		s.change()
	}
	return s, nil
}

// WriteBy has the file be written by write, for tests of slow and broken disks. Call it
// before the store is used.
func (s *Store) WriteBy(write func(path string, content []byte) error) { s.write = write }

// Peek is Open for one who only looks: numbers that it gives out are kept
// nowhere.
func Peek(path string, seed map[intent.VNI]uint16) (*Store, error) {
	s := &Store{
		write: statefile.Write, changed: make(chan struct{}, 1), fresh: map[intent.VNI]uint64{},
		taken: map[intent.VNI]uint16{}, inUse: map[uint16]intent.VNI{}, routers: map[intent.VNI][]string{}, next: 1,
	}
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
	for vni, routers := range f.Routers {
		if _, ok := s.taken[vni]; ok {
			s.routers[vni] = routers
		}
	}
	if !maps.Equal(s.taken, f.Indices) {
		// The file lacks what the data plane shows: its last write has failed, and whoever
		// is told of writes is told again.
		s.change()
	}
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
		return f, fmt.Errorf("read VRF indices: %s has layout %d of a newer program, this one knows %d; remove the file to give the VRFs new numbers", path, f.Version, version)
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

// Index is the VNI's number. A new one must not leave the process before it is [Store.Kept].
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
	s.taken[vni], s.inUse[n] = n, vni
	s.change()
	s.fresh[vni] = s.changes
	return n, nil
}

// Kept tells whether the VNI's number outlives the process: it is on disk, or the disk has
// refused it. Then the number is used all the same, since the pinned maps show it, too.
func (s *Store) Kept(vni intent.VNI) bool {
	if s.path == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, fresh := s.fresh[vni]
	return !fresh
}

func (s *Store) change() {
	s.changes++
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// retryAfter is how long after a write that failed the next one is tried.
const retryAfter = 10 * time.Second

// Run writes the file whenever a number was given out or released, and again some time
// after that has failed, until ctx ends. It calls told after each write, with what came of it.
func (s *Store) Run(ctx context.Context, told func(error)) error {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-again:
		}
		err := s.Commit()
		if again = nil; err != nil {
			again = time.After(retryAfter)
		}
		told(err)
	}
}

// Commit writes the file when a number was given out or released since it was
// written last: once for all of them, since each write waits for the disk. When
// it fails the numbers stay as they are, and the next Commit tries again. Nobody but another
// Commit waits for the disk.
func (s *Store) Commit() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.changes == s.saved {
		s.mu.Unlock()
		return nil
	}
	upTo := s.changes
	b, err := json.Marshal(file{Version: version, Indices: s.taken, Routers: s.routers, Freed: s.freed})
	s.mu.Unlock()
	if err == nil && s.path != "" {
		err = s.write(s.path, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.fresh, func(_ intent.VNI, change uint64) bool { return change <= upTo })
	if err != nil {
		return fmt.Errorf("write VRF indices: %w", err)
	}
	s.saved = upTo
	return nil
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

// Release frees the VNI's number. The file follows; a crash before keeps the number, which
// is harmless.
func (s *Store) Release(vni intent.VNI) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(vni)
}

func (s *Store) release(vni intent.VNI) {
	if n, ok := s.taken[vni]; ok {
		delete(s.taken, vni)
		delete(s.inUse, n)
		delete(s.fresh, vni)
		delete(s.routers, vni)
		s.freed = append(s.freed, n)
		s.change()
	}
}

// Seniority puts the routers that name a VNI in the order in which they came to it on this
// node. Those that are new come last, as they are given.
func (s *Store) Seniority(vni intent.VNI, routers []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.routers[vni]
	place := make(map[string]int, len(known)+len(routers))
	for i, r := range known {
		place[r] = i
	}
	for _, r := range routers {
		if _, ok := place[r]; !ok {
			place[r] = len(known)
			known = append(known, r)
			s.change()
		}
	}
	if len(known) > 0 {
		s.routers[vni] = known
	}
	return slices.SortedFunc(slices.Values(routers), func(a, b string) int { return cmp.Compare(place[a], place[b]) })
}

// Leave is told that a router names the VNI no more.
func (s *Store) Leave(vni intent.VNI, router string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(vni, func(r string) bool { return r == router })
}

func (s *Store) leave(vni intent.VNI, gone func(string) bool) {
	known := s.routers[vni]
	left := slices.DeleteFunc(slices.Clone(known), gone)
	switch {
	case len(left) == len(known):
		return
	case len(left) == 0:
		delete(s.routers, vni)
	default:
		s.routers[vni] = left
	}
	s.change()
}

// Retain releases every VNI that keep does not name, the lowest first, and forgets the
// routers that do not name theirs: for the moment when all sources are in sync, after a
// restart.
func (s *Store) Retain(keep func(intent.VNI) bool, names func(vni intent.VNI, router string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, vni := range slices.Collect(maps.Keys(s.routers)) {
		s.leave(vni, func(router string) bool { return !names(vni, router) })
	}
	for _, vni := range slices.Sorted(maps.Keys(s.taken)) {
		if !keep(vni) {
			s.release(vni)
		}
	}
}
