package metadata

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
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
func (c client) ask(ctx context.Context, patience time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	var conn net.Conn
	if err := c.space.Do(func() (err error) {
		conn, err = (&net.Dialer{Timeout: c.connect}).DialContext(ctx, "tcp", c.to)
		return err
	}); err != nil {
		return 0, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://169.254.169.254"+path, nil)
	if err != nil {
		return 0, err
	}
	r.Close = true
	for name, values := range c.header {
		r.Header[name] = values
	}
	if err := r.Write(conn); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return 0, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK || string(body) != c.instance {
		return 0, fmt.Errorf("status %d, %.100q, want %s", resp.StatusCode, body, c.instance)
	}
	return time.Since(begin), nil
}

// load is what some rounds of requests took.
type load struct {
	took []time.Duration
	// perSecond is of each round.
	perSecond []float64
}

// round has all clients ask at once, count times together.
func (l *load) round(ctx context.Context, clients []client, count int) error {
	each := max(1, count/len(clients))
	took := make([][]time.Duration, len(clients))
	errs := make([]error, len(clients))
	var group sync.WaitGroup
	begin := time.Now()
	for i, c := range clients {
		group.Go(func() {
			for range each {
				d, err := c.ask(ctx, attempt)
				if err != nil {
					errs[i] = fmt.Errorf("%s: %w", c.instance, err)
					return
				}
				took[i] = append(took[i], d)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	l.perSecond = append(l.perSecond, float64(each*len(clients))/time.Since(begin).Seconds())
	l.took = append(l.took, slices.Concat(took...)...)
	return nil
}

// quantile is one of the times, in milliseconds.
func quantile(list []time.Duration, q float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return ms(list[min(len(list)-1, int(q*float64(len(list))))])
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
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
		var ours, classic, nova load
		sides := []struct {
			name    string
			to      *load
			clients []client
		}{{"sluice", &ours, s.clients(many)}, {"classic", &classic, c.clients(many)}, {"nova itself", &nova, slices.Repeat([]client{direct}, many)}}
		for range b.Rounds + 1 {
			for _, side := range sides {
				if err := side.to.round(ctx, side.clients, b.Requests); err != nil {
					return fmt.Errorf("%s, %d machines: %w", side.name, many, err)
				}
			}
		}
		for _, side := range sides {
			// The first round finds neighbours and opens connections.
			first := max(1, b.Requests/many) * many
			side.to.took, side.to.perSecond = side.to.took[first:], side.to.perSecond[1:]
		}
		b.compare(many, ours, classic, nova)
	}
	return nil
}

func (b *bench) compare(many int, ours, classic, nova load) {
	name := func(what, side string) string { return fmt.Sprintf("metadata %s %s machines=%d", what, side, many) }
	for _, side := range []struct {
		name string
		l    load
	}{{"sluice", ours}, {"classic", classic}, {"nova itself", nova}} {
		var goal *Goal
		if side.name == "sluice" && many > 1 {
			goal = atMost(quantile(classic.took, 0.99))
		}
		b.add(name("p50", side.name), quantile(side.l.took, 0.5), "ms", nil, fmt.Sprintf("%d requests", len(side.l.took)))
		b.add(name("p99", side.name), quantile(side.l.took, 0.99), "ms", goal, "")
		b.add(name("requests", side.name), median(side.l.perSecond), "1/s", nil, "")
	}
	b.add(name("requests", "sluice to classic"), median(ours.perSecond)/median(classic.perSecond), "x", atLeast(1), "")
	if many == 1 {
		b.add(name("added p99", "sluice"), quantile(ours.took, 0.99)-quantile(nova.took, 0.99), "ms", atMost(addedGoal), "more than asking Nova itself")
	}
}
