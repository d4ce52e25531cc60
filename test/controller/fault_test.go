package controller_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

// fault is what happens to a call's transaction, on its way between a replica and the database.
type fault struct {
	name string
	// reply: at the answer of the database, else at the request.
	reply   bool
	verdict ovsdbtest.Verdict
	kill    bool
	// database: it is killed, and comes back.
	database bool
	// third is what the third writer does first.
	third func(*random)
	// conflict: the transaction rests on rows that the third writer changes.
	conflict bool
}

// done tells whether the transaction was committed before the fault.
func (f fault) done() bool { return f.reply }

var (
	noFault  = fault{}
	conflict = fault{name: "conflict", third: (*random).changeRows, conflict: true}
	beside   = fault{name: "a change beside it", third: (*random).addForeign}
	// A connection that ends costs a call time alone: the replica finds out, and answers.
	ends = []fault{
		{name: "connection ends before the request", verdict: ovsdbtest.Lose},
		{name: "connection ends within the request", verdict: ovsdbtest.Tear},
		{name: "connection ends before the reply", verdict: ovsdbtest.Lose, reply: true},
		{name: "connection ends within the reply", verdict: ovsdbtest.Tear, reply: true},
		{name: "kill -9 of the database before the request", verdict: ovsdbtest.Lose, database: true},
		{name: "kill -9 of the database before the reply", verdict: ovsdbtest.Lose, reply: true, database: true},
	}
	killedBefore = fault{name: "kill -9 before the request arrives", verdict: ovsdbtest.Lose, kill: true}
	killedWithin = fault{name: "kill -9 when half of the request has arrived", verdict: ovsdbtest.Tear, kill: true}
	killedAfter  = fault{name: "kill -9 after the database's answer", verdict: ovsdbtest.Lose, reply: true, kill: true}
	kills        = []fault{killedBefore, killedWithin, killedAfter}
)

// ofCall tells whether a message is a call's transaction: what a replica does on an event asserts its
// lock.
func ofCall(m *ovsdbtest.Message) bool { return m.Writes() && !ofEvent(m) }

func ofEvent(m *ovsdbtest.Message) bool {
	for _, o := range m.Operations() {
		if o.Op == "assert" {
			return true
		}
	}
	return false
}

// arm has a fault come at the next transaction of a replica that is such a one, and tells whether it
// has come.
func (w *world) arm(r *replica, f fault, such func(*ovsdbtest.Message) bool, third *random) (came func() bool) {
	var n atomic.Int32
	over := make(chan struct{})
	r.proxy.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		if !such(m) || m.Reply != f.reply || n.Add(1) > 1 {
			return ovsdbtest.Pass
		}
		defer close(over)
		if f.third != nil {
			f.third(third)
		}
		if f.kill {
			w.kill(r)
		}
		if f.database {
			w.database.Kill()
			w.database.Run()
		}
		return f.verdict
	})
	return func() bool {
		r.proxy.Watch(nil)
		if n.Load() == 0 {
			return false
		}
		<-over
		return true
	}
}

// do has a replica answer a call while a fault happens, and compares the rows with the model. A call
// that is answered is done. Another one is wholly done, if the database had it, or not at all; the
// other replica shows which.
func (w *world) do(at int, c call, f fault, third *random) {
	w.Helper()
	w.ask(at, c, f, third)
	w.shown(1 - at)
	if f.kill {
		w.start(w.replicas[at])
	}
}

// ask is do without a look at the other replica. It returns the object that was made.
func (w *world) ask(at int, c call, f fault, third *random) (made answer) {
	w.Helper()
	w.note("replica %d: %s %s", at, c, f.name)
	r := w.replicas[at]
	came, conflicts := func() bool { return true }, 0
	if f.name != "" {
		came, conflicts = w.arm(r, f, ofCall, third), r.conflicts()
	}
	status, out, err := c.ask(r)
	if !came() {
		w.Fatalf("%s: no transaction was sent: %d %v %v", c, status, out, err)
	}
	if f.conflict && r.conflicts() == conflicts {
		w.Fatalf("%s: it was no conflict", c)
	}
	switch {
	case f.kill && err == nil:
		w.Fatalf("%s: a killed replica answered %d %v", c, status, out)
	case f.kill:
		var found bool
		made, found = w.find(1-at, c)
		if c.creates() && found != f.done() {
			w.Fatalf("%s: %s: the other replica shows it: %t", c, f.name, found)
		}
		if f.done() {
			c.apply(w.model, made)
		}
	case err != nil || status != c.want:
		w.Fatalf("%s: %d %v %v, want %d", c, status, out, err, c.want)
	case c.apply != nil:
		made = c.made(out)
		c.apply(w.model, made)
	}
	w.check()
	return made
}

// late has a replica hear of no change until it asks the database for something.
func (w *world) late(at int) {
	asked := make(chan struct{})
	var once sync.Once
	w.replicas[at].proxy.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		if m.ToServer && m.Method == "transact" {
			once.Do(func() { close(asked) })
		}
		if m.Method == "update3" && !m.ToServer {
			select {
			case <-asked:
			case <-time.After(ovsdbtest.Timeout):
			}
		}
		return ovsdbtest.Pass
	})
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%d ", len(w.history)+1)+fmt.Sprintf(format, args...))
}

// find asks a replica for the object of a create whose answer is not known.
func (w *world) find(at int, c call) (made answer, found bool) {
	w.Helper()
	if !c.creates() {
		return nil, false
	}
	list := w.get(w.replicas[at], c.list).list(c.object + "s")
	if len(list) > 1 {
		w.Fatalf("%s: it is there %d times", c, len(list))
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[0], true
}

// shown compares what a replica shows with the model: what no column of OVN's has, too.
func (w *world) shown(at int) {
	w.Helper()
	if d := w.shows(at); d != "" {
		w.Fatalf("after %s replica %d shows:%s", w.history[len(w.history)-1], at, d)
	}
}

// shows tells how what a replica shows differs from the model.
func (w *world) shows(at int) string {
	w.Helper()
	var have, want lines
	r := w.replicas[at]
	for _, b := range w.get(r, lbaas+"/loadbalancers").list("loadbalancers") {
		have.add("%s %s %s %v %v %s", b.text("id"), b.text("name"), b.text("description"), b["tags"], b["admin_state_up"], b.text("vip_address"))
	}
	for _, l := range w.get(r, lbaas+"/listeners").list("listeners") {
		have.add("%s %s %s %v %v %s %v", l.text("id"), l.text("name"), l.text("protocol"), l["protocol_port"], l["admin_state_up"], l.text("default_pool_id"), l["loadbalancers"])
	}
	for _, p := range w.get(r, lbaas+"/pools").list("pools") {
		have.add("%s %s %s %v %v", p.text("id"), p.text("name"), p.text("protocol"), p["admin_state_up"], p["loadbalancers"])
		for _, m := range w.get(r, lbaas+"/pools/"+p.text("id")+"/members").list("members") {
			have.add("%s %s %s %v %v %v %s", m.text("id"), m.text("name"), m.text("address"), m["protocol_port"], m["weight"], m["admin_state_up"], m.text("subnet_id"))
		}
	}
	for _, b := range w.Balancers {
		b.shown(&want)
	}
	return difference(have.sorted(), want.sorted())
}
