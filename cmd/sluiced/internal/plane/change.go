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
type Change interface {
	// Told tells whether it is known what is to be prepared.
	Told() bool
	// Prepared tells whether no row of that waits for its turn. It is asked when all is told.
	Prepared() bool
	Do(context.Context) error
}

// Pace is how often it is looked whether all is prepared, and how long a change rests that failed.
type Pace struct{ Every, Pause time.Duration }

// Make makes a change when all is prepared, or changePatience after all was told, and again until it
// succeeds; false when ctx ends first. failed is the log's message for one that does not.
func Make(ctx context.Context, c Change, at Pace, failed string, log *slog.Logger) bool {
	var since time.Time
	said := ""
	for wait := at.Every; loop.Sleep(ctx, wait); {
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
			log.Warn(failed, "error", err)
		}
		wait = at.Pause
	}
	return false
}
