package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// asker makes ten requests a second, whether the ones before have an answer or not.
type asker struct {
	w    *world
	q    question
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	answers []time.Duration
	// refused were told that nobody listens; broken had a connection, and then none.
	refused, broken, other []failure
}

// failure is a request without an answer.
type failure struct {
	began time.Time
	err   error
}

func (f failure) String() string { return f.began.Format("15:04:05.000") + ": " + f.err.Error() }

// cut is when what answered went away; it is not set where nothing may break.
type cut struct{ from, to time.Time }

// breaks tells whether a request was under way then: one takes some milliseconds, on a
// busy machine a second.
func (c cut) breaks(f failure) bool {
	return f.began.After(c.from.Add(-10*askEvery())) && f.began.Before(c.to)
}

// askEvery is 100 ms, on a machine that is as fast as others.
func askEvery() time.Duration { return lab.Patience() / 600 }

// asking starts an asker. An answer may take as long as the lab is patient: a packet
// that opens a connection is sent again after 1, 2, 4 … seconds.
func (w *world) asking(vm string, f family) *asker {
	w.Helper()
	a := &asker{w: w, q: question{vm: vm, family: f}, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		var group sync.WaitGroup
		defer group.Wait()
		for {
			group.Go(a.one)
			select {
			case <-a.stop:
				return
			case <-time.After(askEvery()):
			}
		}
	}()
	return a
}

func (a *asker) one() {
	began := time.Now()
	r, err := a.w.ask(background, a.q)
	if want := instanceOf(a.q.vm); err == nil && (r.status != http.StatusOK || string(r.body) != want) {
		err = fmt.Errorf("status %d, %.200q, want %s", r.status, r.body, want)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.answers = append(a.answers, r.took)
	case errors.Is(err, syscall.ECONNREFUSED):
		a.refused = append(a.refused, failure{began, err})
	case isBroken(err):
		a.broken = append(a.broken, failure{began, err})
	default:
		a.other = append(a.other, failure{began, err})
	}
}

// end stops asking, waits for all answers, and demands that every request had its own,
// but for those that were under way when what answered went away, which it counts.
func (a *asker) end(c cut) (broken int) {
	a.w.Helper()
	close(a.stop)
	<-a.done
	slices.Sort(a.answers)
	if len(a.answers) == 0 {
		a.w.Errorf("%s, %s: no answer at all: %v", a.q.vm, a.q.family, slices.Concat(a.refused, a.broken, a.other))
		return 0
	}
	longest := a.answers[len(a.answers)-1]
	a.w.Logf("%s, %s: %d answers, half in %.1f ms, the longest %d ms; %d refused, %d broken, %d other", a.q.vm, a.q.family, len(a.answers),
		float64(a.answers[len(a.answers)/2].Microseconds())/1000, longest.Milliseconds(), len(a.refused), len(a.broken), len(a.other))
	unexplained := slices.DeleteFunc(slices.Clone(a.broken), c.breaks)
	if bad := slices.Concat(a.refused, unexplained, a.other); len(bad) > 0 {
		a.w.Errorf("%s, %s: without an answer, by when they began: %v", a.q.vm, a.q.family, bad)
	}
	return len(a.broken) - len(unexplained)
}

// fault is something that happens under requests.
type fault struct {
	name string
	// do says when what it ends was gone.
	do func(w *world) time.Time
	// breaks tells that requests may have begun to be answered by what is killed.
	breaks bool
}

// away is how long what was killed stays away.
const away = 1500 * time.Millisecond

// killAndStart ends processes with SIGKILL, on the node of the databases or on m1.
func killAndStart(node, name string) func(*world) time.Time {
	return func(w *world) time.Time {
		w.Helper()
		p := w.process(node, name)
		if err := p.Kill(); err != nil {
			w.Fatal(err)
		}
		gone := time.Now()
		time.Sleep(away)
		if err := p.Start(); err != nil {
			w.Fatal(err)
		}
		return gone
	}
}

func restart(node, name string) func(*world) time.Time {
	return func(w *world) time.Time {
		w.Helper()
		if err := w.process(node, name).Restart(); err != nil {
			w.Fatal(err)
		}
		return time.Now()
	}
}

// faults are what steered ports go through without the loss of an answer.
var faults = []fault{
	{"kill -9 of sluiced", killAndStart("m1", "sluiced"), false},
	{"restart of sluiced", restart("m1", "sluiced"), false},
	{"restart of the proxy", restart("m1", "metadata"), false},
	{"the proxy starts itself anew", handOver("m1"), false},
	{"kill -9 of the proxy", killAndStart("m1", "metadata"), true},
	{"kill -9 of ovs-vswitchd", killAndStart("m1", "vswitchd"), false},
	{"kill -9 of ovn-controller", killAndStart("m1", "controller"), false},
	{"kill -9 of the local database", killAndStart("m1", "ovsdb"), false},
	{"kill -9 of the Southbound database", killAndStart("m-central", "sb"), false},
	{"kill -9 of the Northbound database", killAndStart("m-central", "nb"), false},
}

// Under a request every 100 ms from each of two VMs by each family, whatever is
// restarted or killed: no connection is refused and no answer is missing.
func TestFaultsUnderRequests(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { shared(t).through(f, steered...) })
	}
}

func (w *world) through(f fault, vms ...string) {
	w.Helper()
	w.ownData(vms...)
	var askers []*asker
	for _, vm := range vms {
		for _, fam := range families {
			askers = append(askers, w.asking(vm, fam))
		}
	}
	time.Sleep(5 * askEvery())
	before, begin := w.identities(), time.Now()
	c := cut{begin, f.do(w)}
	if !f.breaks {
		c = cut{}
	}
	time.Sleep(away)
	// What stands for a guest stays, and connections with it.
	if after := w.identities(); after != before {
		w.Errorf("%s: guests were\n%s\nand are\n%s", f.name, before, after)
	}
	w.Logf("%s:", f.name)
	for _, a := range askers {
		a.end(c)
	}
	w.ownData(vms...)
}

// identities says which number stands for which guest on m1.
func (w *world) identities() string {
	w.Helper()
	return w.sh("m1", `cat "$OVS_RUNDIR"/sluice/metadata/identities.json`)
}

// In the namespace form a new proxy takes the listeners of the old one, and the
// connections that wait there.
func TestNamespaceForm(t *testing.T) {
	for _, f := range []fault{
		{"kill -9 of sluiced", killAndStart("m2", "sluiced"), false},
		{"restart of sluiced", restart("m2", "sluiced"), false},
		{"the proxy starts itself anew", handOver("m2"), false},
	} {
		t.Run(f.name, func(t *testing.T) { shared(t).through(f, "m-red2", "m-blue2") })
	}
}

// handOver has a proxy start itself anew: the process keeps its id.
func handOver(node string) func(*world) time.Time {
	return func(w *world) time.Time {
		w.Helper()
		p := w.process(node, "metadata")
		starts := func() int { return strings.Count(p.LogTail(1<<20), "sluiced metadata starts") }
		before := starts()
		if err := p.Signal(syscall.SIGHUP); err != nil {
			w.Fatal(err)
		}
		w.eventually("the proxy on "+node+" has started itself anew", func() error {
			// In the moment of its new start it looks like one that has ended.
			if n := starts(); n == before || !p.Running() {
				return fmt.Errorf("it has started %d times", n)
			}
			return nil
		})
		return time.Now()
	}
}

// Nova is slow, and a proxy that is told to end answers first what it was asked.
func TestRestartWhileNovaThinks(t *testing.T) {
	w := shared(t)
	w.slowNova(700 * time.Millisecond)
	answers := make(chan error, len(steered))
	for _, vm := range steered {
		go func() {
			got, err := w.instance(question{vm: vm, family: ipv4})
			if err == nil && got != instanceOf(vm) {
				err = fmt.Errorf("%s is told %q", vm, got)
			}
			answers <- err
		}()
	}
	time.Sleep(200 * time.Millisecond)
	restart("m1", "metadata")(w)
	for range steered {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// isBroken tells whether a connection that was there ended without an answer.
func isBroken(err error) bool {
	// net/http has no other name for a connection that ended before its request was written.
	ended := strings.Contains(err.Error(), "server closed idle connection")
	return ended || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || isEOF(err) || errors.Is(err, context.Canceled)
}
