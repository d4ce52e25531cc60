package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Row is one wanted or actual row.
type Row[K, V comparable] struct {
	Key   K
	Value V
}

// Driver reads and writes one kind of actual thing. It is called from one
// goroutine at a time. It keeps no wanted state of its own.
//
// A row that Apply or Delete returns an error for may be there or not, and be the one that
// was there or the one that was to be: see Unchanged.
type Driver[K, V comparable] interface {
	// List reads back every row that carries Sluice's mark, as the values that
	// Apply was given: applying a listed row changes nothing. A row that cannot
	// be expressed as a value is listed with the zero value under its key.
	List(ctx context.Context) (map[K]V, error)
	// Apply creates or updates the rows, idempotently and without a gap. The
	// result is nil when all succeeded, else one entry a row, in order.
	Apply(ctx context.Context, rows []Row[K, V]) []error
	// Delete removes the rows; a row that is not there is no error. Results as
	// for Apply.
	Delete(ctx context.Context, keys []K) []error
}

var (
	// ErrForeign is wrapped by a driver that finds an object with the wanted
	// name and without Sluice's mark.
	ErrForeign = errors.New("an object that is not Sluice's has this name")
	// ErrNotReady is wrapped by a driver when something the row refers to is
	// not there yet: the key is retried, and the wait is not logged as a failure.
	ErrNotReady = errors.New("waiting")
	// ErrMissing is an ErrNotReady for what Sluice does not make: a bridge, a port of
	// somebody else, a number that ovs-vswitchd gives. Whoever observes the table may
	// call a long wait for it a problem of that thing. Other long waits are Stage.Waited.
	ErrMissing = fmt.Errorf("%w", ErrNotReady)
)

// Unchanged is an error of a call that has done nothing to the row: what was there is there
// still. A driver that does not know returns the error as it is.
func Unchanged(err error) error {
	if err == nil {
		return nil
	}
	return unchanged{err}
}

type unchanged struct{ error }

func (u unchanged) Unwrap() error { return u.error }

func isUnchanged(err error) bool {
	var u unchanged
	return errors.As(err, &u)
}

// Results is what Apply and Delete return of one error a row: nil if all
// succeeded.
func Results(errs []error) []error {
	if slices.ContainsFunc(errs, func(e error) bool { return e != nil }) {
		return errs
	}
	return nil
}
