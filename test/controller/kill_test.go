package controller_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// A replica is killed at ten points of a mix of calls, five before the database has the transaction
// and five after. Each call that was answered is in the database, each other one wholly or not at all.
func TestKilled(t *testing.T) {
	w := newWorldOf(t, schema.Northbound2303)
	address := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	// The last one made of each kind.
	var lb, pool, web, dns, first string
	step := 0
	do := func(c call, f fault) {
		t.Helper()
		step++
		before := w.model.clone()
		w.do(step%2, c, f, nil)
		if f.kill && !f.done() { // its client tries again, at the other replica
			if d := difference(w.lines(), before.lines()); d != "" {
				t.Fatalf("the model has changed:%s", d)
			}
			w.do(1-step%2, c, noFault, nil)
		}
	}
	id := func(c call) string {
		t.Helper()
		made, found := w.find(0, c)
		if !found {
			t.Fatalf("%s is not there", c)
		}
		return made.text("id")
	}
	made := func(c call, f fault) string { t.Helper(); do(c, f); return id(c) }

	lb = made(w.createBalancer("N1", 0, netip.Addr{}), killedBefore)
	made(w.createBalancer("N2", 0, netip.MustParseAddr("10.0.2.77")), killedAfter)
	pool = made(w.createPool(lb, "tcp", ""), noFault)
	first = made(w.createMember(lb, "tcp", pool, "N1", 0, address("10.0.1.101:80")), killedAfter)
	made(w.createMember(lb, "tcp", pool, "N3", 0, address("10.0.3.101:80")), killedWithin)
	web = made(w.createListener(lb, "tcp", 80, pool), killedAfter)
	dns = made(w.createListener(lb, "udp", 53, ""), killedBefore) // a row of its own
	made(w.createPool(lb, "udp", dns), noFault)
	do(w.updateMember(lb, "tcp", pool, first, 7, false), killedAfter)
	do(w.updateBalancer(lb, false), killedWithin)
	do(w.deleteListener(lb, "tcp", web), noFault)
	do(w.deletePool(lb, "tcp", pool), killedAfter) // with its members, and the row
	do(w.deleteBalancer(lb), killedBefore)
	for other := range w.model.clone().Balancers {
		do(w.deleteBalancer(other), noFault)
	}
	t.Logf("%d calls", len(w.history))
}

// A replica is killed at random points of random calls: before, within or after its transaction, or at
// any time.
func TestKilledAtRandom(t *testing.T) {
	r := newRandom(t, 10, 100)
	for r.next() {
		for range r.IntN(4) {
			r.do(r.IntN(2), r.change(), noFault, nil)
		}
		c := r.change()
		for c.apply == nil { // one that is done
			c = r.change()
		}
		if at := r.IntN(2); r.IntN(2) == 0 {
			r.do(at, c, kills[r.IntN(len(kills))], nil)
		} else {
			r.killAfter(at, c, time.Duration(r.IntN(int(mostDelay))))
		}
	}
}

// mostDelay is more than a call takes on a machine that is not busy.
const mostDelay = 12 * time.Millisecond

// killAfter kills a replica some time after it was asked. Where no answer came, the rows are those
// before the call, or those after it.
func (w *world) killAfter(at int, c call, delay time.Duration) {
	w.Helper()
	w.note("replica %d: %s kill -9 after %s", at, c, delay)
	r := w.replicas[at]
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		time.Sleep(delay)
		w.kill(r)
	}()
	status, out, err := c.ask(r)
	<-killed
	// What it has sent, the database has read when its connection is gone.
	w.until("the end of its connection", func() bool { return strings.Contains(w.database.Appctl("memory/show"), "sessions:1") })
	after := w.model.clone()
	made, found := w.find(1-at, c)
	switch {
	case err == nil && status != c.want:
		w.Fatalf("%s: %d %v", c, status, out)
	case err == nil:
		c.apply(w.model, c.made(out))
	case !c.creates() || found:
		c.apply(after, made)
		if difference(w.content().lines(), after.lines()) == "" {
			w.model = after
		}
	}
	w.check()
	w.shown(1 - at)
	w.start(r)
}
