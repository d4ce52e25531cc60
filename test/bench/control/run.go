package control

import (
	"context"
	"io"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Config says what to measure.
type Config struct {
	// Sluiced is the daemon's path; sluicectl is beside it.
	Sluiced string
	// LabName is the name of the lab.
	LabName string
	// Rounds is how many starts of each kind are timed; 0: none, and so below.
	Rounds int
	// Changes is how many ports and how many VRFs are timed.
	Changes int
	// Idle is how long the idle daemon is watched.
	Idle time.Duration
	Out  io.Writer
}

// vrfs and hosts are the cloud of starts and changes: red, blue and more.
const vrfs, hosts = 10, 20

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) (out []measure.Result, err error) {
	add := func(list []measure.Result, err error) error {
		out = append(out, list...)
		return err
	}
	err = cfg.withCloud(ctx, lab.EVPNParams{ExtraTenants: vrfs - 2, HostsPerTenant: hosts}, func(c *cloud) error {
		if err := add(c.starts(ctx)); err != nil {
			return err
		}
		if cfg.Changes == 0 {
			return nil
		}
		return add(c.changes(ctx))
	})
	if err != nil || cfg.Idle == 0 {
		return out, err
	}
	return out, cfg.withCloud(ctx, lab.EVPNParams{}, func(c *cloud) error { return add(c.idle(ctx)) })
}
