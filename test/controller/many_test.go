package controller_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Clients at once, each with load balancers of its own in networks of all, at either replica, while
// connections end and a third writer changes the networks: each call is answered, and all of them
// together are in the database.
func TestManyClients(t *testing.T) {
	const clients = 6
	r := newRandom(t, 20, 100)
	seed := r.Uint64()
	var each []*random
	for i := range clients {
		m := r.model.clone()
		each = append(each, &random{
			world: &world{T: t, database: r.database, replicas: r.replicas, model: m, prefix: fmt.Sprintf("c%d-", i)},
			Rand:  rand.New(rand.NewPCG(seed, uint64(i))), balancers: 2, free: true,
		})
	}
	var wg sync.WaitGroup
	for _, c := range each {
		wg.Go(func() {
			for range r.steps {
				c.calls()
			}
		})
	}
	stop := make(chan struct{})
	var third sync.WaitGroup
	third.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(100)) * time.Millisecond):
			}
			if r.IntN(3) == 0 {
				r.replicas[r.IntN(2)].proxy.Cut()
			}
			r.changeRows()
			r.addForeign()
		}
	})
	wg.Wait()
	close(stop)
	third.Wait()
	for _, c := range each {
		maps.Copy(r.Balancers, c.Balancers)
	}
	if t.Failed() {
		return
	}
	r.note("all calls")
	r.changeRows() // all have the same note then
	r.settle()
	r.shown(0)
	t.Logf("%d calls, conflicts %d and %d, lost replies %d and %d", clients*r.steps, r.replicas[0].conflicts(), r.replicas[1].conflicts(),
		r.replicas[0].counter(lostReplies), r.replicas[1].counter(lostReplies))
	if r.replicas[0].conflicts()+r.replicas[1].conflicts() == 0 {
		t.Error("no conflict: the test proves nothing")
	}
}

const lostReplies = `sluice_controller_transactions_total{result="unknown"}`

// calls makes a call, whose answer says what has to be there.
func (r *random) calls() {
	c := r.change()
	status, out, err := c.ask(r.replicas[r.IntN(2)])
	switch {
	case err != nil || status != c.want:
		r.Errorf("%s: %d %v %v, want %d", c, status, out, err, c.want)
	case c.apply != nil:
		c.apply(r.model, c.made(out))
	}
}
