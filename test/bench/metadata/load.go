package metadata

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// client asks from a namespace.
type client struct {
	space netns.Namespace
	// to is ADDRESS:PORT, and header what a proxy would have added.
	to     string
	header http.Header
	// instance is the answer.
	instance string
	// connect bounds the connection; 0: nothing does.
	connect time.Duration
}

// hasty gives a connection up at once and tries again: a packet that opens one would be
// sent again after a second only.
func (c client) hasty() client {
	c.connect = 5 * time.Millisecond
	return c
}

const path = "/latest/meta-data/instance-id"

// attempt bounds a request, in the end.
const attempt = 20 * time.Second

// ask makes one request on a connection of its own.
func (c client) ask(ctx context.Context, patience time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, took, err := load.Request{Dial: c.dial, URL: "http://169.254.169.254" + path, Header: c.header}.Get(ctx)
	if err == nil && body != c.instance {
		err = fmt.Errorf("%.100q, want %s", body, c.instance)
	}
	return took, err
}

func (c client) dial(ctx context.Context) (conn net.Conn, err error) {
	err = c.space.Do(func() (err error) {
		conn, err = (&net.Dialer{Timeout: c.connect}).DialContext(ctx, "tcp", c.to)
		return err
	})
	return conn, err
}

// round has all clients ask at once, count times together.
func round(ctx context.Context, to *load.Samples, clients []client, count int) error {
	return to.Round(ctx, len(clients), max(1, count/len(clients)), func(ctx context.Context, i, _ int) (time.Duration, error) {
		d, err := clients[i].ask(ctx, attempt)
		if err != nil {
			err = fmt.Errorf("%s: %w", clients[i].instance, err)
		}
		return d, err
	})
}

// addedGoal is what Sluice may add to a request, in milliseconds.
const addedGoal = 1

// requests measures both sides in turns: one machine alone, and many at once.
func (b *bench) requests(ctx context.Context, s *sluiceSide, c *classicSide) error {
	direct, err := s.direct()
	if err != nil {
		return err
	}
	for _, many := range []int{1, min(b.Clients, s.networks)} {
		var ours, classic, nova load.Samples
		sides := []struct {
			name    string
			to      *load.Samples
			clients []client
		}{{"sluice", &ours, s.clients(many)}, {"classic", &classic, c.clients(many)}, {"nova itself", &nova, slices.Repeat([]client{direct}, many)}}
		for range b.Rounds + 1 {
			for _, side := range sides {
				if err := round(ctx, side.to, side.clients, b.Requests); err != nil {
					return fmt.Errorf("%s, %d machines: %w", side.name, many, err)
				}
			}
		}
		for _, side := range sides {
			// The first round finds neighbours and opens connections.
			side.to.Forget(1, max(1, b.Requests/many)*many)
		}
		b.compare(many, ours, classic, nova)
	}
	return nil
}

func (b *bench) compare(many int, ours, classic, nova load.Samples) {
	name := func(what, side string) string { return fmt.Sprintf("metadata %s %s machines=%d", what, side, many) }
	for _, side := range []struct {
		name string
		l    load.Samples
	}{{"sluice", ours}, {"classic", classic}, {"nova itself", nova}} {
		var goal *measure.Goal
		if side.name == "sluice" && many > 1 {
			goal = measure.AtMost(measure.Quantile(classic.Took, 0.99))
		}
		b.add(name("p50", side.name), measure.Quantile(side.l.Took, 0.5), "ms", nil, fmt.Sprintf("%d requests", len(side.l.Took)))
		b.add(name("p99", side.name), measure.Quantile(side.l.Took, 0.99), "ms", goal, "")
		b.add(name("requests", side.name), measure.Median(side.l.PerSecond), "1/s", nil, "")
	}
	b.add(name("requests", "sluice to classic"), measure.Median(ours.PerSecond)/measure.Median(classic.PerSecond), "x", measure.AtLeast(1), "")
	if many == 1 {
		b.add(name("added p99", "sluice"), measure.Quantile(ours.Took, 0.99)-measure.Quantile(nova.Took, 0.99), "ms", measure.AtMost(addedGoal), "more than asking Nova itself")
	}
}
