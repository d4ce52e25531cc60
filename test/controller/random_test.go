package controller_test

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/nightly"
)

// replay is the variable of the environment that repeats a run: SEED, or SEED:STEPS.
const replay = "SLUICE_CALLS"

// random makes calls that fit the model.
type random struct {
	*world
	*rand.Rand
	steps, taken int
	balancers    int  // as many at most
	free         bool // VIPs are the API's choice
}

// newRandom takes the seed of the environment, that of the night, or the fixed one.
func newRandom(t *testing.T, steps, nightSteps int) *random {
	t.Helper()
	return newRandomIn(t, newWorld, steps, nightSteps)
}

// newRandomIn makes a world of its own.
func newRandomIn(t *testing.T, make func(*testing.T) *world, steps, nightSteps int) *random {
	t.Helper()
	seed := nightly.Seed(t, 1)
	if nightly.On() {
		steps = nightSteps
	}
	if s := os.Getenv(replay); s != "" {
		text, n, _ := strings.Cut(s, ":")
		var err1, err2 error
		seed, err1 = strconv.ParseUint(text, 10, 64)
		if n != "" {
			steps, err2 = strconv.Atoi(n)
		}
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("%s=%s: want SEED or SEED:STEPS: %v", replay, s, err)
		}
	}
	r := &random{world: make(t), Rand: rand.New(rand.NewPCG(seed, 0)), steps: steps, balancers: 6}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the same again: %s=%d:%d go test -run '^%s$' ./test/controller", replay, seed, r.taken, t.Name())
		}
	})
	return r
}

// next tells whether there is another step.
func (r *random) next() bool {
	r.taken++
	return r.taken <= r.steps
}

// Random calls at two replicas, with faults on the way of each second one, and a third writer who
// changes the same rows. After each the rows are those of the model, and no reference dangles.
func TestRandomCalls(t *testing.T) {
	r := newRandom(t, 200, 1000)
	for r.next() {
		r.step()
	}
	counts := map[string]int{}
	for _, line := range r.history {
		for _, f := range slices.Concat(ends, kills, []fault{conflict, beside, {name: "at once"}, {name: "hears late"}, {name: "the third writer"}, {name: "router"}}) {
			if strings.Contains(line, f.name) {
				counts[f.name]++
			}
		}
	}
	t.Logf("%d steps: %v", r.steps, counts)
}

func (r *random) step() {
	r.Helper()
	at := r.IntN(2)
	switch n := r.IntN(100); {
	case n < 6:
		r.event()
		return
	case n < 14:
		r.atOnce()
		return
	case n < 18:
		r.gone(at)
		return
	case n < 30:
		r.hearsLate(at)
		return
	}
	c, f := r.change(), noFault
	if c.apply != nil {
		switch n := r.IntN(20); {
		case n < 4:
			f = conflict
		case n < 6:
			f = beside
		case n < 10:
			f = ends[r.IntN(len(ends))]
		case n < 12:
			f = kills[r.IntN(len(kills))]
		}
	}
	if f.kill || r.IntN(4) == 0 {
		r.do(at, c, f, r)
	} else {
		r.ask(at, c, f, r)
	}
}

// hearsLate has a replica be asked for what the other one has changed before it has heard of the change.
func (r *random) hearsLate(at int) {
	r.Helper()
	r.late(1 - at)
	r.note("replica %d hears late", 1-at)
	c := r.change()
	made := r.ask(at, c, noFault, nil)
	if c.creates() && r.IntN(2) == 0 {
		r.ask(1-at, r.callFor(c, made.text("id")), noFault, nil)
	}
	r.shown(1 - at)
	r.replicas[1-at].proxy.Watch(nil)
}

// gone asks for an object that is not there.
func (r *random) gone(at int) {
	r.Helper()
	id := "00000000-0000-4000-8000-000000000000"
	list := []call{r.deleteBalancer(id), r.updateBalancer(id, true), r.deleteListener(id, "tcp", id), r.updatePool(id, "tcp", id, true),
		r.createMember(id, "tcp", id, "N1", 0, netip.MustParseAddrPort("10.0.1.9:1")), r.deleteMember(id, "tcp", id, id)}
	r.do(at, refused(list[r.IntN(len(list))], 404), noFault, nil)
}

// atOnce has each replica make a member of the same pool, or a load balancer with a VIP in the same
// network.
func (r *random) atOnce() {
	r.Helper()
	calls := [2]call{r.createBalancer("N2", 0, netip.Addr{}), r.createBalancer("N2", 0, netip.Addr{})}
	if _, pools, _ := r.objects(); len(pools) > 0 {
		p := pools[r.IntN(len(pools))]
		network, subnet := "N3", 0
		if r.Balancers[p.balancer].VIP.Is6() {
			network, subnet = "N1", 1
		}
		for i := range calls { // ports that no other member has
			addr := netip.AddrPortFrom(r.address(network, subnet), uint16(10000+r.names))
			calls[i] = r.createMember(p.balancer, p.protocol, p.id, network, subnet, addr)
		}
	} else if len(r.Balancers)+2 > r.balancers {
		return
	}
	r.note("at once: %s, %s", calls[0], calls[1])
	type result struct {
		status int
		out    answer
		err    error
	}
	var results [2]chan result
	for i, c := range calls {
		results[i] = make(chan result, 1)
		go func() {
			status, out, err := c.ask(r.replicas[i])
			results[i] <- result{status, out, err}
		}()
	}
	for i, c := range calls {
		got := <-results[i]
		if got.err != nil || got.status != c.want {
			r.Fatalf("%s: %d %v %v", c, got.status, got.out, got.err)
		}
		c.apply(r.model, c.made(got.out))
	}
	r.check()
	r.shown(r.IntN(2))
}
