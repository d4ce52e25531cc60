package controller_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

// holder waits for the replica that acts on events.
func (w *world) holder() (at int) {
	w.Helper()
	w.until("a replica to act on events", func() bool {
		at = slices.IndexFunc(w.replicas[:], func(r *replica) bool { return r.running.Load() && r.counter("sluice_controller_leads") == 1 })
		return at >= 0
	})
	return at
}

// The replica that acts on events is killed between an event and its write, or between the write and
// the database's answer: the other one takes over, and the rows become what they have to be.
func TestHolderIsKilled(t *testing.T) {
	w := newWorld(t)
	lb := w.ask(0, w.createBalancer("N1", 0, netip.Addr{}), noFault, nil).text("id")
	w.ask(1, w.createBalancer("N3", 0, netip.Addr{}), noFault, nil)
	pool := w.ask(0, w.createPool(lb, "tcp", ""), noFault, nil).text("id")
	w.ask(1, w.createMember(lb, "tcp", pool, "N4", 0, netip.MustParseAddrPort("10.0.4.9:80")), noFault, nil)
	for _, event := range []struct {
		name string
		f    func()
	}{
		{"a router port comes", func() { w.connect("R1", "N3") }},
		{"a router port goes", func() { w.disconnect("R1", "N2") }},
		{"the port of a VIP goes", func() { w.nbctl("lsp-del", w.Balancers[lb].Port) }},
	} {
		for _, f := range []fault{killedBefore, killedWithin, killedAfter} {
			before := w.model.clone()
			r := w.replicas[w.holder()]
			w.note("%s, and its holder: %s", event.name, f.name)
			came := w.arm(r, f, ofEvent, nil)
			event.f()
			w.until("the holder's write", func() bool { return !r.running.Load() })
			if !came() {
				t.Fatal("it was not killed at its write")
			}
			w.settle()
			w.holder()
			w.start(r)
			// Back to how it was.
			w.note("back")
			for _, router := range []string{"R1", "R2"} {
				for _, n := range before.Routers[router] {
					if !slices.Contains(w.Routers[router], n) {
						w.connect(router, n)
					}
				}
				for _, n := range slices.Clone(w.Routers[router]) {
					if !slices.Contains(before.Routers[router], n) {
						w.disconnect(router, n)
					}
				}
			}
			w.settle()
		}
	}
}

// A replica that is told to end answers the call that it has begun first.
func TestStopInACall(t *testing.T) {
	w := newWorld(t)
	r := w.replicas[0]
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.proxy.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		if m.ToServer && ofCall(m) {
			once.Do(func() { close(arrived) })
			<-release
		}
		return ovsdbtest.Pass
	})
	ended := make(chan error, 1)
	go func() {
		<-arrived
		go func() { ended <- r.Stop() }()
		w.until("the end of its listener", func() bool {
			conn, err := net.Dial("tcp", r.Address)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		close(release)
	}()
	c := w.createBalancer("N1", 0, netip.Addr{})
	status, out, err := c.ask(r)
	if err != nil || status != c.want {
		t.Fatalf("%d %v %v", status, out, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	r.running.Store(false)
	c.apply(w.model, c.made(out))
	w.note("%s", c)
	w.check()
}

// A replica that has lost the database does not say of an object that it is not there: another replica
// may have made it since.
func TestLostReplicaDoesNotDeny(t *testing.T) {
	w := newWorld(t)
	lost := w.replicas[1]
	lost.proxy.Watch(func(*ovsdbtest.Message) ovsdbtest.Verdict { return ovsdbtest.Lose })
	lost.proxy.Cut()
	w.until("the replica to know", func() bool { status, _, err := lost.ask("GET", "/readyz", ""); return err == nil && status == 503 })
	id := w.ask(0, w.createBalancer("N1", 0, netip.Addr{}), noFault, nil).text("id")
	path := lbaas + "/loadbalancers/" + id
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+lost.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	switch {
	case err == nil:
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without the database it answers %d", response.StatusCode)
		}
	case !errors.Is(err, context.DeadlineExceeded):
		t.Error(err)
	}
	lost.proxy.Watch(nil)
	if got := w.get(lost, path); got["loadbalancer"].(map[string]any)["id"] != id {
		t.Errorf("with the database it answers %v", got)
	}
}
