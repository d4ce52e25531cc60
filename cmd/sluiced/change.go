package main

import (
	"context"
	"time"
)

// changePatience bounds the wait for rows that wait for something themselves, as those
// of a bridge that is not there, once all is known that is wanted.
const changePatience = 30 * time.Second

// change is one to what has been prepared beside what carries.
type change struct {
	// every is how often it is looked whether all is prepared, and pause is after a
	// change that failed.
	every, pause time.Duration
	// told tells whether what is to be prepared is known, and prepared whether no row
	// of it waits for its turn.
	told, prepared func() bool
	do             func(context.Context) error
	failed         string // the log's word
}

// whenPrepared makes a change when all is prepared, or changePatience after all was told,
// and again until it succeeds; false when ctx ends first.
func (n *node) whenPrepared(ctx context.Context, c change) bool {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var since time.Time
	said := ""
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			if !c.told() {
				since = time.Time{}
				continue
			}
			if since.IsZero() {
				since = now
			}
			if !c.prepared() && now.Sub(since) < changePatience {
				continue
			}
		}
		err := c.do(ctx)
		if err == nil {
			return true
		}
		if err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			n.d.log.Warn(c.failed, "error", err)
		}
		tick.Reset(c.pause)
	}
}
