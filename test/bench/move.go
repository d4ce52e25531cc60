package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// moreThanOVN is what a gateway's move may cost beside the move in OVN itself, in
// milliseconds.
const moreThanOVN = 10

// betweenMoves lets the announcements of one move end before the next.
const betweenMoves = 6 * time.Second

// move measures moves of gateway ports between two living nodes.
func (o options) move(ctx context.Context, out io.Writer, rep *report) (err error) {
	l, err := lab.Up(ctx, lab.EVPNMoves(), lab.Options{Name: o.labName})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	if err := l.PrepareMoves(ctx); err != nil {
		return err
	}
	if err := l.StartSluiceds(ctx, o.sluiced, ""); err != nil {
		return err
	}
	var all []lab.Move
	for i := range o.moves {
		m, err := l.MeasureMove(ctx, []string{"a2", "a1"}[i%2])
		if err != nil {
			return err
		}
		all = append(all, m)
		if err := sleep(ctx, betweenMoves); err != nil {
			return err
		}
	}
	ours, ovn := lab.Medians(all)
	rep.add(fmt.Sprintf("gateway move, more than OVN's own outage, median of %d", len(all)), float64(ours-ovn)/float64(time.Millisecond), "ms", atMost(moreThanOVN))
	rep.note(fmt.Sprintf("%v against %v", ours.Round(time.Millisecond), ovn.Round(time.Millisecond)))
	return nil
}
