package demo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What a ping of pings packets may lose while sluiced is dead: mostLost in any case, and moreLost
// more than the control pair, which no sluiced carries. A busy machine loses packets of both.
const (
	pings    = 1000
	mostLost = 50
	moreLost = 20
)

// pair is a ping between two VMs.
type pair struct{ from, to string }

// The pairs, IPv4 and IPv6. Red's VMs in two clouds talk by the fabric, through what sluiced has
// programmed on a1 and b1. Those on a2 and a3 talk by a tunnel of OVN, on the same machine.
var (
	killedPairs  = []pair{{"a-red1", "10.20.0.11"}, {"a-red1", "fd00:20::11"}}
	controlPairs = []pair{{"c-same", "10.40.0.11"}, {"c-same", "fd00:40::11"}}
)

// kill ends sluiced with SIGKILL in the middle of pings, and tells the loss beside that of a pair
// which does not use sluiced.
func (t *tour) kill(ctx context.Context) error {
	t.head("kill -9 of sluiced under traffic")
	collect, err := t.startPings(ctx, append(append([]pair{}, killedPairs...), controlPairs...))
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(time.Second)
	if err := t.bothDaemons(func(n string) error {
		_, err := t.end(n, "sluiced")
		return err
	}); err != nil {
		return err
	}
	killed := time.Since(began)
	// Without a daemon on either side for a while, then with new ones.
	time.Sleep(time.Second)
	if err := t.bothDaemons(t.startAgain); err != nil {
		return err
	}
	tallies, err := collect()
	if err != nil {
		return err
	}
	t.say("sluiced was killed on a1 and b1, stayed dead for a second and was started again.")
	t.say("Pings lost, of %d (c-same's do not pass Sluice: they show what the lab itself loses):", pings)
	var errs []error
	for i, p := range killedPairs {
		lost, control := tallies[i], tallies[len(killedPairs)+i]
		t.say("    %-6s to %-11s through sluiced's programs: %d;  %s to %s without them: %d", p.from, p.to, lost.lost, controlPairs[i].from, controlPairs[i].to, control.lost)
		if lost.took < killed {
			errs = append(errs, fmt.Errorf("%s to %s: the pings ended before sluiced was killed", p.from, p.to))
		}
		errs = append(errs, judge(p, lost, control))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return t.lab.WaitFor(ctx, "sluiced is ready again", func() error {
		_, err := t.lab.Exec(ctx, "a1", "sluicectl", "status")
		return err
	})
}

// bothDaemons does something to sluiced on a1 and b1.
func (t *tour) bothDaemons(do func(node string) error) error {
	return errors.Join(do("a1"), do("b1"))
}

// startAgain starts the sluiced that was killed.
func (t *tour) startAgain(node string) error {
	p, err := t.lab.Process(node, "sluiced")
	if err != nil {
		return err
	}
	delete(t.ended, node+" sluiced")
	return p.Start()
}

// startPings pings over all pairs at once; collect waits, and gives what each has lost.
func (t *tour) startPings(ctx context.Context, pairs []pair) (collect func() ([]tallyOfPing, error), err error) {
	said := make([]strings.Builder, len(pairs))
	wait := make([]func() error, len(pairs))
	for _, p := range pairs {
		if err := t.lab.WaitFor(ctx, p.from+" reaches "+p.to, func() error {
			_, err := t.lab.Exec(ctx, p.from, "ping", "-c1", "-W1", p.to)
			return err
		}); err != nil {
			return nil, err
		}
	}
	for i, p := range pairs {
		cmd, err := t.lab.Command(ctx, p.from, "ping", "-q", "-i", "0.005", "-c", strconv.Itoa(pings), p.to)
		if err != nil {
			return nil, err
		}
		cmd.Stdout = &said[i]
		wait[i] = cmd.Wait
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	return func() ([]tallyOfPing, error) {
		out, errs := make([]tallyOfPing, len(pairs)), make([]error, len(pairs))
		for i := range pairs {
			_ = wait[i]() // the summary says more than the exit code
			out[i], errs[i] = readPing(said[i].String())
		}
		return out, errors.Join(errs...)
	}, nil
}

// tallyOfPing is what ping says at its end. Wrong are answers that are none: errors, duplicates,
// other contents.
type tallyOfPing struct {
	lost  int
	wrong string
	took  time.Duration
}

var pingSummary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received,(.*?) [\d.]+% packet loss, time (\d+)ms`)

func readPing(text string) (tallyOfPing, error) {
	m := pingSummary.FindStringSubmatch(text)
	if m == nil {
		return tallyOfPing{}, fmt.Errorf("ping said: %s", text)
	}
	sent, err := strconv.Atoi(m[1])
	if err != nil {
		return tallyOfPing{}, err
	}
	received, err := strconv.Atoi(m[2])
	if err != nil {
		return tallyOfPing{}, err
	}
	ms, err := strconv.Atoi(m[4])
	return tallyOfPing{lost: sent - received, wrong: strings.Trim(m[3], " ,"), took: time.Duration(ms) * time.Millisecond}, err
}

// judge tells what was not as it has to be.
func judge(p pair, got, control tallyOfPing) error {
	switch {
	case got.wrong != "":
		return fmt.Errorf("%s to %s: wrong answers while sluiced was dead: %s", p.from, p.to, got.wrong)
	case got.lost > mostLost:
		return fmt.Errorf("%s to %s: %d of %d pings were lost while sluiced was dead, at most %d may be", p.from, p.to, got.lost, pings, mostLost)
	case got.lost > control.lost+moreLost:
		return fmt.Errorf("%s to %s: %d of %d pings were lost while sluiced was dead, %d of the control pair", p.from, p.to, got.lost, pings, control.lost)
	}
	return nil
}
