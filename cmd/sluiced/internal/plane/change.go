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

// Change is a takeover by maps or devices that are prepared beside those that forward.
type Change interface {
	// Told tells whether all wanted rows are known.
	Told() bool
	// Prepared tells whether all of them are written. It is asked after Told.
	Prepared() bool
	Do(context.Context) error
}

// Pace is how often it is looked whether all is prepared, and how long a change rests that failed.
type Pace struct{ Every, Pause time.Duration }

// Make calls Do when Prepared, or changePatience after Told, until Do succeeds. It returns false if ctx
// ends first. failed is the log message of a Do that fails.
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
