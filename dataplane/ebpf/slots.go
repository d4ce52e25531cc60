package ebpf

import (
	"fmt"
	"time"
)

// restTime is how long a freed row stays unused. A run of a program takes
// microseconds; what it looked up before is long done with after this.
const restTime = time.Second

// slots hands out the rows of one array map by key, counts what refers to each
// row, and lets freed rows rest. Row 0 is never used.
type slots[K comparable] struct {
	size uint32 // rows of the array, with row 0
	next uint32 // the first row that was never used
	rows map[K]uint32
	keys map[uint32]K
	refs map[uint32]int
	rest []resting // in the order of their times
	now  func() time.Time
	// after is how long a row rests while there are others; at least restTime.
	after time.Duration
}

type resting struct {
	row   uint32
	since time.Time
}

func newSlots[K comparable](size uint32) *slots[K] {
	return &slots[K]{size: size, next: 1, rows: map[K]uint32{}, keys: map[uint32]K{}, refs: map[uint32]int{}, now: time.Now, after: restTime}
}

// acquire adds a reference to the key's row; fresh means that the row has to be
// written first.
func (s *slots[K]) acquire(k K) (row uint32, fresh bool, err error) {
	row, ok := s.rows[k]
	if ok {
		s.refs[row]++
		return row, false, nil
	}
	if row, err = s.free(); err != nil {
		return 0, false, err
	}
	s.rows[k], s.keys[row], s.refs[row] = row, k, 1
	return row, true, nil
}

func (s *slots[K]) free() (uint32, error) {
	// The array may have more rows, from before the limit was lowered.
	if s.used() >= int(s.size)-1 {
		return 0, fmt.Errorf("all %d rows are in use: %w", s.size-1, ErrFull)
	}
	rested := time.Duration(-1)
	if len(s.rest) > 0 {
		rested = s.now().Sub(s.rest[0].since)
	}
	if s.next < s.size && rested < s.after {
		s.next++
		return s.next - 1, nil
	}
	if rested >= restTime {
		row := s.rest[0].row
		s.rest = s.rest[1:]
		return row, nil
	}
	return 0, fmt.Errorf("all %d rows are in use: %w", s.size-1, ErrFull)
}

// retain adds a reference to a row that is in use.
func (s *slots[K]) retain(row uint32) { s.refs[row]++ }

// release takes a reference back; freed means that nothing refers to the row
// any more and it should be cleared.
func (s *slots[K]) release(row uint32) (freed bool) {
	if s.refs[row]--; s.refs[row] > 0 {
		return false
	}
	delete(s.refs, row)
	s.forget(row)
	s.rest = append(s.rest, resting{row, s.now()})
	return true
}

// forget takes the key off a row. Of two rows of one key, which a crash may
// leave, the other one stays the key's.
func (s *slots[K]) forget(row uint32) {
	k, ok := s.keys[row]
	if !ok {
		return
	}
	delete(s.keys, row)
	if s.rows[k] == row {
		delete(s.rows, k)
	}
}

// adopt takes a row over from the map, without a reference.
func (s *slots[K]) adopt(row uint32, k K) { s.rows[k], s.keys[row] = row, k }

// settle ends adoption: rows that nothing refers to are given back as unused,
// and every row below the highest one in use can be handed out at once.
func (s *slots[K]) settle() (unused []uint32) {
	for row := range s.keys {
		if s.refs[row] == 0 {
			s.forget(row)
			unused = append(unused, row)
		}
	}
	// Of two rows of one key the one in use is found.
	for row, k := range s.keys {
		s.rows[k] = row
	}
	for row := range s.refs {
		s.next = max(s.next, row+1)
	}
	for row := uint32(1); row < s.next; row++ {
		if s.refs[row] == 0 {
			s.rest = append(s.rest, resting{row: row})
		}
	}
	return unused
}

// used is the number of rows with references.
func (s *slots[K]) used() int { return len(s.refs) }
