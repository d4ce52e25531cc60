package control

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// Goals of a start over pins, in seconds.
const (
	sessionGoal = 0.5
	routesGoal  = 1.5
)

// kind is a kind of start. The first start of a cloud is none of them.
type kind struct {
	name string
	// config is what the n-th start has more in its configuration.
	config func(n int) string
	// before prepares a start, while sluiced does not run.
	before          func(*cloud, context.Context) error
	session, routes *measure.Goal
}

func kinds() []kind {
	return []kind{
		{"restart, same programs", func(int) string { return "" }, nil, measure.AtMost(sessionGoal), measure.AtMost(routesGoal)},
		// A constant of the programs: the maps stay as they are.
		{"restart, other programs", func(n int) string { return "fabric:\n  df: " + []string{"set", "clear"}[n%2] + "\n" }, nil, measure.AtMost(sessionGoal), measure.AtMost(routesGoal)},
		{"cold start", func(int) string { return "" }, (*cloud).cleanUp, nil, nil},
	}
}

// starts measures all kinds of start, each as often as Rounds says.
func (c *cloud) starts(ctx context.Context) (out []measure.Result, err error) {
	if _, _, err := c.begin(ctx, ""); err != nil {
		return nil, err
	}
	if c.Rounds == 0 {
		return nil, nil
	}
	for _, k := range kinds() {
		var sessions, routes []float64
		for n := range c.Rounds {
			session, all, err := c.restart(ctx, k, n)
			if err != nil {
				return out, fmt.Errorf("%s %d: %w", k.name, n+1, err)
			}
			fmt.Fprintf(c.Out, "%s %d: session after %.3f s, all routes after %.3f s\n", k.name, n+1, session.Seconds(), all.Seconds())
			sessions, routes = append(sessions, session.Seconds()), append(routes, all.Seconds())
		}
		out = append(out,
			c.ofStarts(k.name+" to BGP session", sessions, k.session, ""),
			c.ofStarts(k.name+" to all routes", routes, k.routes, fmt.Sprintf("; %d VRFs, %d host routes", len(c.keysByVNI()), len(c.keys()))))
	}
	return out, nil
}

func (c *cloud) ofStarts(name string, list []float64, goal *measure.Goal, more string) measure.Result {
	low, high := measure.Quartiles(list)
	return measure.Result{Name: name, Value: measure.Median(list), Unit: "s", Goal: goal,
		Note: fmt.Sprintf("median of %d, half of them from %.2f to %.2f%s", len(list), low, high, more)}
}

// restart ends sluiced, and times its next start.
func (c *cloud) restart(ctx context.Context, k kind, n int) (session, routes time.Duration, err error) {
	if err := c.stop(ctx); err != nil {
		return 0, 0, err
	}
	if k.before != nil {
		if err := k.before(c, ctx); err != nil {
			return 0, 0, err
		}
	}
	// The work of the last start and end is over.
	if err := c.quiet(ctx); err != nil {
		return 0, 0, err
	}
	return c.begin(ctx, k.config(n))
}

// begin starts sluiced, and tells how long the session and all routes took.
func (c *cloud) begin(ctx context.Context, more string) (session, routes time.Duration, err error) {
	start, err := c.start(ctx, more)
	if err != nil {
		return 0, 0, err
	}
	up, err := c.neighbour.awaitSession(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("%w; the daemon's log ends: %s", err, c.daemon.LogTail(5))
	}
	all, err := c.neighbour.awaitAll(ctx, c.keys())
	if err != nil {
		return 0, 0, fmt.Errorf("%w; the daemon's log ends: %s", err, c.daemon.LogTail(5))
	}
	return up.Sub(start), all.Sub(start), nil
}
