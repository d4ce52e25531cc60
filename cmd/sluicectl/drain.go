package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func drainCommand(o *options) *cobra.Command {
	var r nodeapi.DrainRequest
	var wait time.Duration
	c := &cobra.Command{
		Use:   "drain",
		Short: "Take this node out of service without losing packets",
		Long: `Take this node out of service without losing packets.

sluiced first announces the routes of the node as the least preferred (the
graceful-shutdown community of RFC 8326, and LOCAL_PREF 0), and withdraws them after
--withdraw-after. Packets that still arrive are forwarded. The node is drained when
no VRF has had traffic for 5 seconds; 'sluicectl status' shows the stage, and the
VRFs that still have traffic. A drain outlives restarts of sluiced, until 'sluicectl
undrain'. A second drain changes --withdraw-after, counted from the beginning of the
first: a node that has withdrawn its routes announces them until then.

Gateway ports stay where OVN has them: move those without another path.

Exit codes: as usual; 3 if the node is not drained within --wait, and 5 if the drain has
begun and sluiced no longer tells its stage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if r.WithdrawAfter < 0 || wait < 0 {
				return usagef("--wait and --withdraw-after cannot be negative")
			}
			d := newDaemon(o)
			s, err := admin.Call(c.Context(), d.client, nodeapi.Drain, r)
			if err == nil && wait > 0 {
				if s, err = awaitDrained(c.Context(), d, wait); err != nil && !errors.Is(err, errAnswerNo) {
					return fmt.Errorf("the drain continues, and its stage is not known: %w: %w", admin.ErrUnknown, err)
				}
			}
			if err != nil && !errors.Is(err, errAnswerNo) {
				return drainError(err)
			}
			return errors.Join(o.print(c.OutOrStdout(), s, func(w io.Writer) error { return writeDrain(w, s) }), err)
		},
	}
	f := c.Flags()
	f.DurationVar(&r.WithdrawAfter, "withdraw-after", drain.DefaultWithdrawAfter, "time from the beginning of the drain until the routes are withdrawn")
	f.DurationVar(&wait, "wait", 0, "how long to wait until the node is drained, such as 2m; 0: do not wait")
	return c
}

func undrainCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "undrain", Short: "Put this node back into service after 'sluicectl drain'", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := admin.Call(c.Context(), newDaemon(o).client, nodeapi.Undrain, admin.Nothing{})
			if err != nil {
				return drainError(err)
			}
			return o.print(c.OutOrStdout(), s, func(w io.Writer) error { return writeDrain(w, s) })
		},
	}
}

// drainError: without sluiced there is nobody to announce anything.
func drainError(err error) error {
	if errors.Is(err, admin.ErrNotRunning) {
		return fmt.Errorf("%w: %w", errOffline, err)
	}
	return err
}

// awaitDrained asks until the node is drained.
func awaitDrained(ctx context.Context, d *daemon, patience time.Duration) (status.Drain, error) {
	deadline := time.Now().Add(patience)
	for {
		s, err := admin.Call(ctx, d.client, nodeapi.GetDrain, admin.Nothing{})
		switch {
		case err != nil || s.Stage == string(drain.Drained):
			return s, err
		case time.Now().After(deadline):
			return s, errAnswerNo
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func writeDrain(w io.Writer, s status.Drain) error {
	text := "this node serves"
	switch drain.Stage(s.Stage) {
	case drain.Shutdown:
		text = fmt.Sprintf("the routes are announced as the least preferred, and withdrawn at %s", s.WithdrawAt.Format(time.TimeOnly))
	case drain.Withdrawn:
		text = "the routes are withdrawn; waiting for traffic to end"
		if s.Announced != nil && *s.Announced > 0 {
			text = "the routes are being withdrawn"
		}
		if len(s.Busy) > 0 {
			text += ", in VRFs " + join(s.Busy)
		}
	case drain.Drained:
		text = "drained: no route is announced, and no VRF has traffic"
	}
	switch {
	case s.Announced != nil && s.Wanted != nil && *s.Announced < *s.Wanted:
		text += fmt.Sprintf("; %d of %d routes are announced so far", *s.Announced, *s.Wanted)
	case s.Announced != nil:
		text += fmt.Sprintf(" (%d routes announced)", *s.Announced)
	}
	_, err := output.Println(w, text)
	return err
}
