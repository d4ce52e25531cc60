package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Samples is what rounds of requests took.
type Samples struct {
	Took []time.Duration
	// PerSecond is of each round.
	PerSecond []float64
}

// Ask makes request number i of a client, and says how long it took.
type Ask func(ctx context.Context, client, i int) (time.Duration, error)

// Round has clients ask at once, each of them so often, one request after the other. A
// round with an error is none.
func (s *Samples) Round(ctx context.Context, clients, each int, ask Ask) error {
	took, errs := make([][]time.Duration, clients), make([]error, clients)
	var group sync.WaitGroup
	begin := time.Now()
	for c := range clients {
		group.Go(func() {
			for i := range each {
				d, err := ask(ctx, c, i)
				if err != nil {
					errs[c] = err
					return
				}
				took[c] = append(took[c], d)
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.PerSecond = append(s.PerSecond, float64(clients*each)/elapsed.Seconds())
	s.Took = append(s.Took, slices.Concat(took...)...)
	return nil
}

// Forget drops the first rounds, of so many requests together: those that find neighbours and
// fill caches.
func (s *Samples) Forget(rounds, requests int) {
	s.PerSecond, s.Took = s.PerSecond[rounds:], s.Took[requests:]
}
