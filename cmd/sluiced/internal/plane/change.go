package plane

import (
	"context"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// changePatience bounds the wait for rows that wait for something themselves, as those
// of a bridge that is not there, once all is known that is wanted.
const changePatience = 30 * time.Second

// Change is one to what has been prepared beside what forwards.
type Change struct {
	// Every is how often it is looked whether all is prepared, and Pause is after a change that failed.
	Every, Pause time.Duration
	// Told tells whether what is to be prepared is known, Prepared whether no row of it waits for
	// its turn.
	Told, Prepared func() bool
	Do             func(context.Context) error
	Failed         string // the log's message
}

// Run makes the change when all is prepared, or changePatience after all was told,
// and again until it succeeds; false when ctx ends first.
func (c Change) Run(ctx context.Context, log *slog.Logger) bool {
	var since time.Time
	said := ""
	for wait := c.Every; loop.Sleep(ctx, wait); {
		if !c.Told() {
			since = time.Time{}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if !c.Prepared() && time.Since(since) < changePatience {
			continue
		}
		err := c.Do(ctx)
		if err == nil {
			return true
		}
		if err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			log.Warn(c.Failed, "error", err)
		}
		wait = c.Pause
	}
	return false
}
