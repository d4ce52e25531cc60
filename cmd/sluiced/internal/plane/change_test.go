package plane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a change that is told and prepared from a time on, or never (-1), and fails some times.
type scripted struct {
	begun          time.Time
	told, prepared time.Duration
	fails, tries   int
}

func (s *scripted) since(d time.Duration) bool { return d >= 0 && time.Since(s.begun) >= d }
func (s *scripted) Told() bool                 { return s.since(s.told) }
func (s *scripted) Prepared() bool             { return s.since(s.prepared) }

func (s *scripted) Do(context.Context) error {
	if s.tries++; s.tries <= s.fails {
		return errors.New("refused")
	}
	return nil
}

// A change is made when all is prepared, at the latest some time after it was known what is to be, and
// again after a pause where it fails, which the log has once.
func TestMake(t *testing.T) {
	const every, pause, never = 100 * time.Millisecond, time.Minute, -1
	for name, tt := range map[string]struct {
		change scripted
		took   time.Duration
		made   bool
		lines  int
	}{
		"at once":            {scripted{}, every, true, 0},
		"when prepared":      {scripted{told: time.Second, prepared: 2 * time.Second}, 2 * time.Second, true, 0},
		"never prepared":     {scripted{told: time.Second, prepared: never}, time.Second + changePatience, true, 0},
		"never told":         {scripted{told: never}, time.Hour, false, 0},
		"it fails twice":     {scripted{fails: 2}, every + 2*pause, true, 1},
		"it always fails":    {scripted{fails: 1000}, time.Hour, false, 1},
		"prepared, not told": {scripted{told: time.Minute, prepared: 0}, time.Minute, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var log strings.Builder
			tt.change.begun = time.Now()
			made := Make(ctx, &tt.change, Pace{every, pause}, "no change", slog.New(slog.NewTextHandler(&log, nil)))
			if took := time.Since(tt.change.begun); made != tt.made || took != tt.took || strings.Count(log.String(), "\n") != tt.lines {
				t.Errorf("%s: made %t after %s, want %t after %s; log\n%s", name, made, took, tt.made, tt.took, &log)
			}
		})
	}
}
