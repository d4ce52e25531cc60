package control

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// idleGoal is in percent of a core.
const idleGoal = 0.2

// startOver is how long after a start its work is over: the last looks at what it made, and the
// memory given back.
const startOver = 15 * time.Second

// used is what a process has used until a moment.
type used struct {
	at             time.Time
	processor      time.Duration
	wakeups, opens uint64
}

// idle watches sluiced of a gateway with two tenants, while nothing changes.
func (c *cloud) idle(ctx context.Context) ([]measure.Result, error) {
	if _, _, err := c.begin(ctx, ""); err != nil {
		return nil, err
	}
	if err := sleep(ctx, startOver); err != nil {
		return nil, err
	}
	opens, err := countOpens(c.daemon.Pid())
	if err != nil {
		return nil, err
	}
	defer opens.close()
	before, err := c.used(opens)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, c.Idle); err != nil {
		return nil, err
	}
	after, err := c.used(opens)
	if err != nil {
		return nil, err
	}
	took := after.at.Sub(before.at)
	per := func(before, after uint64) float64 { return float64(after-before) / took.Seconds() }
	note := fmt.Sprintf("two tenants, over %s", took.Round(time.Second))
	return []measure.Result{
		{Name: "idle gateway, CPU", Value: 100 * float64(after.processor-before.processor) / float64(took), Unit: "% of a core", Goal: measure.AtMost(idleGoal), Note: note},
		{Name: "idle gateway, files opened", Value: per(before.opens, after.opens), Unit: "1/s", Note: note},
		{Name: "idle gateway, wakeups", Value: per(before.wakeups, after.wakeups), Unit: "1/s", Note: note},
	}, nil
}

func (c *cloud) used(opens *opens) (u used, err error) {
	u.at = time.Now()
	if u.processor, err = daemons.Processor([]*lab.Process{c.daemon}); err != nil {
		return u, err
	}
	if u.wakeups, err = wakeups(c.daemon.Pid()); err != nil {
		return u, err
	}
	u.opens, err = opens.count()
	return u, err
}

// wakeups counts how often threads of a process have waited: each wait ends with a wakeup.
func wakeups(pid int) (sum uint64, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, ok := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
		if !ok {
			return 0, fmt.Errorf("%s has no voluntary_ctxt_switches", f)
		}
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		sum += n
	}
	return sum, nil
}
