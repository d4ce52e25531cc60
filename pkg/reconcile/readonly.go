package reconcile

import (
	"context"
	"errors"
)

// ErrReadOnly is the result of every write to a driver that only lists.
var ErrReadOnly = errors.New("this driver only reads")

// Lister is the reading half of a Driver.
type Lister[K, V comparable] interface {
	List(ctx context.Context) (map[K]V, error)
}

// ReadOnly makes a driver that lists, for a pipeline that runs dry.
func ReadOnly[K, V comparable](l Lister[K, V]) Driver[K, V] { return readOnly[K, V]{l} }

type readOnly[K, V comparable] struct{ Lister[K, V] }

func (readOnly[K, V]) Apply(_ context.Context, rows []Row[K, V]) []error { return refuse(len(rows)) }
func (readOnly[K, V]) Delete(_ context.Context, keys []K) []error        { return refuse(len(keys)) }

func refuse(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = ErrReadOnly
	}
	return errs
}

// Unseen lists nothing: for a table whose actual side cannot be read.
type Unseen[K, V comparable] struct{}

// List implements Lister.
func (Unseen[K, V]) List(context.Context) (map[K]V, error) { return map[K]V{}, nil }
