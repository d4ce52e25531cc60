// Package drain takes a node out of service without losing a packet of what has
// another way, and keeps over restarts that it is out.
//
// The stages follow each other:
//
//   - serving: nothing was asked.
//   - graceful-shutdown: the node's routes carry the graceful-shutdown community
//     (RFC 8326), so that others use every other path first.
//   - withdrawn: a settable time later they are withdrawn. What still comes is
//     forwarded.
//   - drained: the VRFs' counters have not moved for QuietTime. Traffic that
//     comes again leads back to withdrawn.
//
// The package owns the state file and the arithmetic of stages. It announces
// nothing, counts nothing and starts no goroutine.
package drain

import (
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
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// Stage is how far a drain is: one of the words of pkg/reason.
type Stage string

// The stages, in their order.
const (
	Serving   Stage = reason.Serving
	Shutdown  Stage = reason.GracefulShutdown
	Withdrawn Stage = reason.Withdrawn
	Drained   Stage = reason.Drained
)

// Stages lists them.
func Stages() []Stage { return []Stage{Serving, Shutdown, Withdrawn, Drained} }

const (
	// DefaultWithdrawAfter is the time between the community and the withdrawal
	// when none is given: what a fabric needs to choose other paths, many times over.
	DefaultWithdrawAfter = 30 * time.Second
	// QuietTime is how long no packet may have been counted for a drained node.
	QuietTime = 5 * time.Second
)

// Drain is the state of a node. It is safe for use by several goroutines.
type Drain struct {
	path string
	// writing is held while the state file is written, and taken before mu: who asks how far
	// the drain is does not wait for the disk.
	writing sync.Mutex

	mu     sync.Mutex
	record *record // nil: serving
	// packets are the VRFs' counters as last seen, moved when each last changed.
	packets map[intent.VNI]uint64
	moved   map[intent.VNI]time.Time
	// watched is since when the counters are looked at without a route announced.
	watched time.Time
}

// record is the state file.
type record struct {
	Version int `json:"version"`
	// Since is when the drain began, WithdrawAfter the time from there.
	Since         time.Time     `json:"since"`
	WithdrawAfter time.Duration `json:"withdrawAfterNanoseconds"`
}

const version = 1

// Open reads the state file; without one the node serves. It is at most as long
// as it was asked for until the routes are withdrawn, whatever happened to the
// clock meanwhile.
func Open(path string, now time.Time) (*Drain, error) {
	d := &Drain{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of the drain: %w", err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil || r.Version != version {
		return nil, fmt.Errorf("read the state of the drain: %s is not of this version (%w); remove it to have the node serve", path, errors.Join(err, fmt.Errorf("layout %d", r.Version)))
	}
	if r.Since.After(now) {
		r.Since = now
	}
	d.record = &r
	return d, nil
}

// ErrNotOnDisk is wrapped when the drain has begun or ended, and a power failure may undo that.
var ErrNotOnDisk = statefile.ErrNotOnDisk

// Begin starts a drain, or gives one that is under way another time. It does nothing once ctx has
// ended: its last look is just before the file is renamed.
func (d *Drain) Begin(ctx context.Context, now time.Time, withdrawAfter time.Duration) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	r := record{Version: version, Since: now, WithdrawAfter: withdrawAfter}
	if old := d.current(); old != nil {
		r.Since = old.Since
	}
	b, err := json.Marshal(r)
	if err == nil {
		err = statefile.WriteIn(ctx, d.path, b)
	}
	if err != nil && !errors.Is(err, ErrNotOnDisk) {
		return fmt.Errorf("the drain was not begun: save its state: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = &r
	if err != nil {
		return fmt.Errorf("the drain was begun: %w", err)
	}
	return nil
}

func (d *Drain) current() *record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record
}

// End has the node serve again, and tells whether it did not before. It does nothing once ctx has
// ended.
func (d *Drain) End(ctx context.Context) (ended bool, err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.current() == nil {
		return false, nil
	}
	err = statefile.RemoveIn(ctx, d.path)
	if err != nil && !errors.Is(err, ErrNotOnDisk) {
		return false, fmt.Errorf("the drain was not ended: remove its state: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record, d.packets, d.moved, d.watched = nil, nil, nil, time.Time{}
	if err != nil {
		return true, fmt.Errorf("the drain was ended: %w", err)
	}
	return true, nil
}

// Status is how far the drain is.
type Status struct {
	Stage Stage
	// Since is when it began, WithdrawAt when the routes are or were withdrawn.
	Since, WithdrawAt time.Time
	// Busy are the VRFs that had traffic within QuietTime, once withdrawn.
	Busy []intent.VNI
}

// Status tells how far the drain is now.
func (d *Drain) Status(now time.Time) Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record == nil {
		return Status{Stage: Serving}
	}
	s := Status{Stage: Shutdown, Since: d.record.Since, WithdrawAt: d.record.Since.Add(d.record.WithdrawAfter)}
	if now.Before(s.WithdrawAt) {
		return s
	}
	s.Stage = Withdrawn
	for vni, at := range d.moved {
		if now.Sub(at) < QuietTime {
			s.Busy = append(s.Busy, vni)
		}
	}
	slices.Sort(s.Busy)
	if len(s.Busy) == 0 && !d.watched.IsZero() && now.Sub(d.watched) >= QuietTime {
		s.Stage = Drained
	}
	return s
}

// Observe takes the VRFs' counters. withdrawn tells that no route is announced any
// more: a node is drained QuietTime after that at the earliest.
func (d *Drain) Observe(now time.Time, packets map[intent.VNI]uint64, withdrawn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record == nil {
		return
	}
	moved := map[intent.VNI]time.Time{}
	for vni, n := range packets {
		old, seen := d.packets[vni]
		if at, was := d.moved[vni]; was {
			moved[vni] = at
		}
		if seen && n != old {
			moved[vni] = now
		}
	}
	d.packets, d.moved = maps.Clone(packets), moved
	if !withdrawn {
		d.watched = time.Time{}
	} else if d.watched.IsZero() {
		d.watched = now
	}
}
